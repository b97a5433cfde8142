"""Classify names of outputs, attributes and map members: secret, public, identifier or neutral."""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from itertools import pairwise
from typing import Final


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


class Name(enum.Enum):
    """The classification of a value by its name."""

    SECRET = enum.auto()
    #: Applies to a value or a list, but not to the members of a map, which have their own names.
    SECRETS = enum.auto()
    IDENTIFIER = enum.auto()
    PUBLIC = enum.auto()
    NEUTRAL = enum.auto()


_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+")
#: The maximum characters of a name that classify it.
_LONGEST: Final = 200
_SECRET_WORDS: Final = _split("""
    password passwords passwd pwd pw pass passphrase passphrases passcode token tokens jwt bearer
    psk otp totp apikey apikeys privatekey secretkey accesskey connectionstring dsn kubeconfig sas
    pin
""")
_COLLECTIVE: Final = frozenset({"secret", "secrets", "credential", "credentials", "creds", "auth"})
_KEYS: Final = frozenset({"key", "keys", "pem"})
_OF_SECRET_KEYS: Final = _split("""
    private secret access api auth account primary secondary encryption signing master shared admin
    service license licence storage ssh deploy client server tls ca
""")
_IDENTIFIERS: Final = _split("id ids uuid uuids guid guids uid uids arn arns")
_PUBLIC_WORDS: Final = _split("""
    account accounts address addresses algorithm annotation annotations arch attribute availability
    az azs branch bucket buckets cidr cidrs class cluster clusters collection comment container
    count country database databases date days db dbname description dialect directory domain
    domains driver email enabled encoding endpoint endpoints engine env environment environments
    expiration expires expiry family file filename flavor folder format fqdn group groups host
    hostname hostnames hosts image images index instance instances interval ip ips issuer kind label
    labels lang language length level location locations login mail max message method min mode
    name names namespace namespaces network networks nodes number option options org organization
    owner partition path paths plan platform policy port ports prefix principal priority project
    projects protocol provider publisher queue region regions registry release replicas repo
    repository resource role roles scheme schema scope scopes server servers service services sid
    size sku source stage state status subject subnet subnets suffix table tag tags tenant tier time
    timeout timezone title topic ttl type unit uri uris url urls user username usernames users
    version versions vpc website zone zones
""")


def read_name(name: str) -> Name:
    """Classify a name by its words, of which the last is the most important."""
    # The cache must not keep the keys of documents, which can have megabytes.
    return _classify(name[:_LONGEST])


@lru_cache(maxsize=4096)
def _classify(name: str) -> Name:
    words = [word.lower() for word in _NAME_PART.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words:
        return Name.NEUTRAL
    *before, last = words
    is_public_name = last in _PUBLIC_WORDS or last in _IDENTIFIERS
    pairs = {first + second for first, second in pairwise(words)}
    has_key = last in _KEYS and not _OF_SECRET_KEYS.isdisjoint(before)
    if not is_public_name and (has_key or not _SECRET_WORDS.isdisjoint({*words, *pairs})):
        return Name.SECRET
    if not is_public_name and not _COLLECTIVE.isdisjoint(words):
        return Name.SECRETS
    if last in _IDENTIFIERS and _COLLECTIVE.isdisjoint(words):
        return Name.IDENTIFIER
    return Name.PUBLIC if is_public_name else Name.NEUTRAL


def name_of_member(key: str, outer: Name) -> Name:
    """Classify the name of a member of a map with the classification ``outer``."""
    own = read_name(key)
    return Name.SECRET if own is Name.NEUTRAL and outer is Name.SECRET else own
