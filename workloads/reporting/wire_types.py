"""The types of the fields of a report, with the limits of Kubernetes.

The service rejects impossible values with a validation error instead of a database error.
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

# The size limit of Kubernetes objects, 1.5 MiB, does not allow for more entries.
MAX_ENTRIES: Final = 1000

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# A prefix of 253 characters, a slash and a name of 63 characters.
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
    _NO_NUL: "must not contain NUL",
    _UID: "must be a uid: letters, digits and '-'",
    _DNS_LABEL: "must be a DNS label (RFC 1123): lower-case letters, digits and '-'",
    _DNS_SUBDOMAIN: "must be a DNS subdomain (RFC 1123): lower-case letters, digits, '-' and '.'",
    _KEY: "must be a label key, such as 'app.kubernetes.io/name'",
    _VALUE: "must be a label value: letters, digits, '-', '_' and '.'",
}

Image: TypeAlias = Annotated[str, Meta(max_length=MAX_IMAGE, pattern=_NO_NUL)]
# A code and an optional detail.
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
    """The base of the forms. It rejects unknown fields, to detect misspelt fields.

    The garbage collector does not track instances, because they cannot be part of a cycle.
    """
