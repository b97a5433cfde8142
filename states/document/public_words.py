"""Public vocabulary: common values that are not secrets.

The vocabulary includes names of regions, well-known ports and users, network addresses, and ARNs.
A marked value in the vocabulary never hides other values (``secret_rule``).
"""

from __future__ import annotations

import re
from typing import Final


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: Words in lower case, with "-" in place of a space or "_".
_WORDS: Final = _split("""
    true false yes no on off null none nil enabled disabled default unknown public private internal
    external shared main master primary secondary replica standby latest stable beta alpha current
    admin administrator root postgres postgresql mysql mariadb mongodb mongo redis oracle sqlserver
    rdsadmin rabbitmq guest user username test tester demo example service app application api web
    system operator owner readonly read-only readwrite read-write reader writer ubuntu debian
    ec2-user centos azureuser opc core vagrant jenkins gitlab github terraform tofu opentofu
    kubernetes docker helm nginx apache grafana prometheus elastic elasticsearch kibana kafka
    zookeeper cassandra memcached consul vault nomad keycloak backup monitoring replication
    prod production prd stage staging stg dev develop development qa uat sandbox preview live
    tcp udp icmp http https tls ssl ssh ftp sftp smtp smtps imap imaps pop3 ldap ldaps grpc amqp
    amqps mqtt jdbc odbc ipv4 ipv6 dualstack any all allow deny permit ingress egress inbound
    outbound require required prefer verify-ca verify-full aws azure azurerm gcp google oci
    amazonaws localhost localdomain global regional multi-region string number bool boolean object
    list map set tuple dynamic json yaml text base64 utf-8 small medium large xlarge standard
    premium basic free aurora aurora-mysql aurora-postgresql
    eastus eastus2 westus westus2 westus3 centralus northcentralus southcentralus westcentralus
    canadacentral canadaeast brazilsouth brazilsoutheast northeurope westeurope francecentral
    francesouth germanywestcentral germanynorth norwayeast norwaywest swedencentral swedensouth
    switzerlandnorth switzerlandwest uksouth ukwest polandcentral italynorth spaincentral
    uaenorth uaecentral qatarcentral israelcentral southafricanorth southafricawest centralindia
    southindia westindia jioindiawest eastasia southeastasia japaneast japanwest koreacentral
    koreasouth australiaeast australiasoutheast australiacentral mexicocentral newzealandnorth
    west-europe north-europe east-us east-us-2 west-us west-us-2 west-us-3 central-us uk-south
    uk-west southeast-asia east-asia japan-east japan-west france-central germany-west-central
    asia europe africa australia northamerica southamerica
""")

#: Ports as texts, because a document contains ports as numbers or texts.
_PORTS: Final = _split("""
    20 21 22 23 25 53 67 68 69 80 88 110 111 123 135 137 138 139 143 161 162 179 389 443 445 464
    465 500 514 515 543 544 546 547 554 587 631 636 853 873 902 989 990 993 995 1080 1194 1433 1434
    1521 1723 1812 1813 1883 2049 2181 2375 2376 2377 2379 2380 2424 2480 3000 3128 3268 3269 3306
    3307 3389 3478 4000 4222 4317 4318 4369 4443 4444 4500 4646 4647 4648 4789 5000 5001 5044 5060
    5061 5222 5432 5433 5439 5555 5601 5666 5671 5672 5900 5984 5985 5986 6000 6123 6222 6379 6380
    6432 6443 6514 6666 6667 6783 7000 7001 7077 7199 7443 7473 7474 7687 7946 8000 8001 8008 8020
    8025 8080 8081 8082 8083 8086 8088 8090 8091 8096 8100 8123 8125 8181 8200 8201 8222 8300 8301
    8302 8443 8472 8500 8501 8502 8600 8649 8834 8883 8888 8983 9000 9001 9042 9043 9090 9091 9092
    9093 9094 9095 9096 9098 9100 9104 9113 9115 9121 9142 9153 9160 9187 9200 9216 9300 9339 9411
    9418 9443 9600 9870 9999 10000 10050 10051 10250 10255 10256 10257 10259 11211 15432 15671
    15672 15692 16379 16443 19999 25565 25672 26257 26379 27017 27018 27019 28015 28017 30000 32767
    50000 50051 50070 50075 54321 60000 61613 61614 61616 65535
""")

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?"
_HOST: Final = rf"(?:\*\.)?(?:{_LABEL}\.){{1,12}}[a-z]{{2,24}}\.?"
_V4: Final = r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?"
_GEO: Final = (
    r"us|eu|ap|sa|ca|me|af|il|mx|cn|uk|fr|nl|pl|de|asia|europe|africa|australia|northamerica"
    r"|southamerica"
)
_SIDES: Final = (
    r"(?:gov-|iso[a-z]?-|iso[a-z]?)?(?:north|south|east|west|central|northeast|northwest|southeast"
    r"|southwest)"
)
_CITIES: Final = (
    r"frankfurt|amsterdam|london|paris|madrid|milan|zurich|stockholm|ashburn|phoenix|chicago"
    r"|sanjose|toronto|montreal|tokyo|osaka|seoul|chuncheon|mumbai|hyderabad|singapore|sydney"
    r"|melbourne|saopaulo|vinhedo|santiago|jerusalem|jeddah|dubai|johannesburg|hangzhou|shanghai"
    r"|beijing|shenzhen|par|ams|waw|de|gb"
)
#: Regions and zones (eu-west-1a, europe-west1-b, eu-frankfurt-1, use1-az4), IPv4 addresses and
#: networks, ARNs, and the first and last lines of PEM.
_PUBLIC: Final = re.compile("|".join((
    rf"(?:{_GEO})-(?:{_SIDES}|{_CITIES})-?\d{{0,2}}(?:-?[a-f])?", r"[a-z]{3,4}\d-az\d", _V4,
    r"arn:[a-z-]+:[a-z0-9-]*:[a-z0-9-]*:\d*:\S*", r"-----(?:BEGIN|END) [A-Z0-9 ]{1,40}-----",
)), re.ASCII)  # fmt: skip
#: Host names, optionally with a scheme and a port; IPv6 addresses; identifiers such as
#: vpc-0a1b2c3d4e5f67890; short regions such as fsn1; versions, timestamps and machine types.
_STRUCTURED: Final = re.compile("|".join((
    rf"(?:[a-z][a-z0-9+.-]{{0,20}}://)?(?:(?i:{_HOST})|localhost|{_V4})(?::\d{{1,5}})?/?",
    r"(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?:/\d{1,3})?",
    r"[a-z]{1,16}(?:-[a-z]{1,16}){0,2}-(?:[0-9a-f]{8}|[0-9a-f]{17})", r"[a-z]{3}\d{1,2}",
    r"v?\d{1,5}(?:\.\d{1,5}){1,3}(?:[-+.](?:rc|beta|alpha|p|r)\.?\d{0,3})?",
    r"v\d(?:(?:alpha|beta)\d)?",
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    r"(?:db\.|cache\.)?[a-z]{1,3}\d{1,2}[a-z]{0,4}\.(?:\d{0,2}x?large|nano|micro|small|medium|metal)",
    r"Standard_[A-Z]{1,3}\d{1,3}[a-z]{0,4}(?:_v\d)?", r"[a-z]\d[a-z]?-[a-z]{3,9}-\d{1,3}",
)), re.ASCII)  # fmt: skip
#: The maximum length of public vocabulary.
_MOST: Final = 300


def is_public(text: str) -> bool:
    """Return whether the whole text is public vocabulary."""
    if len(text) > _MOST:
        return False
    word = text.lower().replace(" ", "-").replace("_", "-")
    return word in _WORDS or text in _PORTS or _PUBLIC.fullmatch(text) is not None


def has_public_form(text: str) -> bool:
    """Return whether the whole text has a form that is typical of values that are not secret."""
    return len(text) <= _MOST and _STRUCTURED.fullmatch(text) is not None
