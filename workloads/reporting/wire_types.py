"""The types of the fields of a report, with Kubernetes' own limits.

An impossible report gets an error of this format instead of an error of a database column.
"""

import datetime as dt
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

from workloads.collection import MAX_COLLECTOR_VERSION, MAX_REPORT_INTERVAL
from workloads.kubernetes.facts import (
    MAX_IMAGE,
    MAX_NAME,
    MAX_NAMESPACE,
    MAX_STATUS_REASON,
    MAX_UID,
)

# No Kubernetes object has more entries: its size is at most 1.5 MiB.
MAX_ENTRIES: Final = 1000

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# A prefix of 253 characters, a slash and a name of 63.
_LABEL_KEY: Final = 317

# PostgreSQL cannot store NUL.
_NO_NUL: Final = r"^[^\x00]*\Z"
_UID: Final = r"^[-0-9A-Za-z]+\Z"
_DNS_LABEL: Final = rf"^{_LABEL}\Z"
_DNS_SUBDOMAIN: Final = rf"^{_SUBDOMAIN}\Z"
_KEY: Final = rf"^(?=(.{{1,253}}/)?[^/]+\Z)({_SUBDOMAIN}/)?{_QUALIFIED}\Z"
_VALUE: Final = rf"^({_QUALIFIED})?\Z"
#: Messages for texts that do not match.
PATTERNS: Final = {
    _NO_NUL: "has a NUL character",
    _UID: "must be a uid: letters, digits and '-'",
    _DNS_LABEL: "must be a DNS label (RFC 1123): lower-case letters, digits and '-'",
    _DNS_SUBDOMAIN: "must be a DNS subdomain (RFC 1123): lower-case letters, digits, '-' and '.'",
    _KEY: "must be a label key, such as 'app.kubernetes.io/name'",
    _VALUE: "must be a label value: letters, digits, '-', '_' and '.'",
}

Image: TypeAlias = Annotated[str, Meta(max_length=MAX_IMAGE, pattern=_NO_NUL)]
# A code, and optionally a detail.
Reason: TypeAlias = Annotated[str, Meta(max_length=MAX_STATUS_REASON, pattern=_NO_NUL)]
# Codes passed through from Kubernetes.
Code: TypeAlias = Annotated[str, Meta(max_length=128, pattern=_NO_NUL)]
Uid: TypeAlias = Annotated[str, Meta(max_length=MAX_UID, pattern=_UID)]
Version: TypeAlias = Annotated[str, Meta(max_length=MAX_COLLECTOR_VERSION, pattern=_NO_NUL)]
Namespace: TypeAlias = Annotated[str, Meta(max_length=MAX_NAMESPACE, pattern=_DNS_LABEL)]
Name: TypeAlias = Annotated[str, Meta(max_length=MAX_NAME, pattern=_DNS_SUBDOMAIN)]
ContainerName: TypeAlias = Annotated[str, Meta(max_length=63, pattern=_DNS_LABEL)]
LabelKey: TypeAlias = Annotated[
    str,
    Meta(max_length=_LABEL_KEY, pattern=_KEY),
]
LabelValue: TypeAlias = Annotated[str, Meta(max_length=63, pattern=_VALUE)]
ExitCode: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Amount: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Moment: TypeAlias = Annotated[dt.datetime, Meta(tz=True)]
Interval: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_REPORT_INTERVAL)]


class Form(Struct, forbid_unknown_fields=True, gc=False):
    """Refuses unknown fields: a misspelt field would be treated as absent.

    Instances cannot be part of a cycle, so the garbage collector need not track them.
    """
