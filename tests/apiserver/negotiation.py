"""Request validation of a real API server before it answers, as in 1.20.2 and 1.36.2.

`make live-kubernetes` compares these rules with a real server.
"""

from __future__ import annotations

from tests.apiserver.recording import Fault

WHOLE = "whole"
METADATA = "PartialObjectMetadata"
METADATA_LIST = "PartialObjectMetadataList"
TABLE = "Table"

_FORMS = {METADATA, METADATA_LIST, TABLE}
_TYPES = {"", "*/*", "application/*", "application/json"}
_NOT_ACCEPTABLE = (
    "only the following media types are accepted: "
    "application/json, application/yaml, application/vnd.kubernetes.protobuf"
)


def form(accept: str, kind: str, *, is_list: bool, is_watch: bool) -> str | Fault:
    """Return the form in which the answer comes, or the refusal.

    The first clause that the server knows decides, fit or not: nothing falls back to the next.
    """
    known = False
    for clause in accept.split(","):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        if media_type not in _TYPES:
            continue
        known = True
        wanted = parameters.get("as", "")
        if not wanted:
            return WHOLE
        ours = parameters.get("g") == "meta.k8s.io" and parameters.get("v") in ("v1", "v1beta1")
        if not (ours and wanted in _FORMS):
            continue
        if is_watch or wanted in (TABLE, METADATA_LIST if is_list else METADATA):
            return wanted
        thing = f"a list (*apps.{kind}List)" if is_list else f"not a list (*core.{kind})"
        message = f"you requested {wanted}, but the requested object is {thing}"
        return Fault.refused(406, "NotAcceptable", message)
    message = _NOT_ACCEPTABLE if known else "406: Not Acceptable"
    return Fault.refused(406, "NotAcceptable", message)


def invalid(query: dict[str, str]) -> Fault | None:
    """Reject parameters like the real server, which answers 500 to a bad version of a watch."""
    for name in ("limit", "timeoutSeconds"):
        if not query.get(name, "0").isdecimal():
            message = f'strconv.ParseInt: parsing "{query[name]}": invalid syntax'
            return Fault.refused(400, "BadRequest", message)
    version = query.get("resourceVersion", "") or "0"
    if "watch" in query and not version.isdecimal():
        message = (
            f'resourceVersion: Invalid value: "{version}": '
            f'strconv.ParseUint: parsing "{version}": invalid syntax'
        )
        return Fault.refused(500, "", message)
    if "continue" in query and version != "0":
        message = "specifying resource version is not allowed when using continue"
        return Fault.refused(400, "BadRequest", message)
    return None
