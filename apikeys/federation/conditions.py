"""Conditions of a trust policy on the claims of an assertion. All conditions must be met.

A condition is ``{"claim": name, "equals": text}``, ``{"claim": name, "in": [text, …]}`` or
``{"claim": name, "glob": text}``.

**Names of claims.** A name is the exact name of the claim: ``repository_id``, or
``oidc.circleci.com/project-id``. A name with a leading slash is a JSON Pointer (RFC 6901) to a
nested claim: ``/kubernetes.io/serviceaccount/uid``.

**Globs.** ``*`` matches any characters except for the separators ``/`` and ``:``. Every other
character matches itself.

**Values** are compared as text: numbers and booleans as in JSON. A list meets a condition if any of
its items does. Null, fractions and objects meet no condition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra_service.lib.api.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

#: A condition in a row and in the API.
Condition = dict[str, Any]
#: The path to a claim: the names of its parents, followed by its own name.
Path = tuple[str, ...]

OPERATORS: Final = ("equals", "in", "glob")
#: Operators that compare the whole value, and can therefore pin a claim.
PINNING: Final = ("equals", "in")
MAX_CONDITIONS: Final = 20
MAX_NAME: Final = 200
MAX_TEXT: Final = 500
MAX_CHOICES: Final = 50

_SEPARATORS: Final = re.compile("([/:])")
_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~[01])+)+")
#: Claims that conditions cannot use, because the service verifies them itself.
_NOT_FOR_CONDITIONS: Final = frozenset({"iss", "aud", "exp", "iat", "nbf", "jti"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a condition."""

    claim: str
    #: The operator and its value, such as ``{"equals": "main"}``.
    wanted: dict[str, Any]
    #: The claim's value, if present.
    had: Any
    met: bool


def check(conditions: Sequence[Condition], claims: Mapping[str, Any]) -> list[Verdict]:
    """Return the result of each condition for these claims, in the conditions' order."""
    return [_judge(condition, claims) for condition in conditions]


def are_met(verdicts: Collection[Verdict]) -> bool:
    """Return whether all conditions are met; False without conditions."""
    return bool(verdicts) and all(verdict.met for verdict in verdicts)


def path_of(claim: str) -> Path:
    """Return the path of the claim with this name."""
    if not claim.startswith("/"):
        return (claim,)
    parts = claim[1:].split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def value_at(claims: Mapping[str, Any], claim: str) -> Any:
    """Return the value of the claim with this name; None if it is missing."""
    found: Any = claims
    for name in path_of(claim):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def text_of(value: Any) -> str | None:
    """Return a single value as text for comparison, or None if it cannot meet a condition."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else None


def matches(glob: str, text: str) -> bool:
    """Return whether the text matches the glob, segment by segment, in linear time."""
    wanted, had = _SEPARATORS.split(glob), _SEPARATORS.split(text)
    return len(wanted) == len(had) and all(
        _segment_matches(segment, other) for segment, other in zip(wanted, had, strict=True)
    )


def pinned(conditions: Sequence[Condition]) -> dict[Path, frozenset[str]]:
    """Return the values of each claim that ``equals`` or ``in`` allows."""
    values: dict[Path, frozenset[str]] = {}
    for condition in conditions:
        if (operator := _operator(condition)) in PINNING:
            wanted = condition[operator]
            allowed = frozenset([wanted] if operator == "equals" else wanted)
            path = path_of(condition["claim"])
            values[path] = values.get(path, allowed) & allowed
    return values


def named(conditions: Sequence[Condition]) -> set[Path]:
    """Return the claims in the conditions."""
    return {path_of(condition["claim"]) for condition in conditions}


def faults(conditions: object, ids: Collection[str] = ()) -> dict[str, str]:
    """Return the format errors by place, such as ``0.glob``. The place "" is the whole list."""
    if not isinstance(conditions, list) or not conditions:
        return {"": "Must be a list of at least one condition."}
    if len(conditions) > MAX_CONDITIONS:
        return {"": f"More than {MAX_CONDITIONS} conditions."}
    identifying = {path_of(claim) for claim in ids}
    return {
        f"{number}.{place}" if place else str(number): fault
        for number, condition in enumerate(conditions)
        for place, fault in _faults_of_one(condition, identifying)
    }


def _faults_of_one(condition: object, ids: Collection[Path]) -> Iterator[tuple[str, str]]:
    if not isinstance(condition, dict):
        yield "", "Must be an object with 'claim' and exactly one of 'equals', 'in' or 'glob'."
        return
    known = ("claim", *OPERATORS)
    for name in condition:
        if name not in known:
            guess = did_you_mean(name, known) if isinstance(name, str) else ""
            yield str(name)[:64], f"Unknown field{guess}"
    given = [operator for operator in OPERATORS if operator in condition]
    if len(given) != 1:
        yield "", "Specify exactly one of 'equals', 'in' and 'glob'."
    claim = condition.get("claim")
    if fault := _fault_of_name(claim):
        yield "claim", fault
        return
    for operator in given:
        yield from _faults_of_value(operator, condition[operator])
    if "glob" in given and _identifies(path_of(str(claim)), ids):
        yield "glob", "An id cannot be matched with glob. Use 'equals' or 'in'."


def _fault_of_name(claim: object) -> str:
    if fault := _fault_of_text(claim, MAX_NAME):
        return fault
    name = str(claim)
    if name.startswith("/") and _POINTER.fullmatch(name) is None:
        return (
            "Not a JSON Pointer, such as '/kubernetes.io/namespace'. Write '~1' for '/' in a name."
        )
    if path_of(name)[0] in _NOT_FOR_CONDITIONS:
        return "The service verifies this claim itself. Remove the condition."
    return ""


def _faults_of_value(operator: str, value: object) -> Iterator[tuple[str, str]]:
    if operator != "in":
        if fault := _fault_of_text(value, MAX_TEXT):
            yield operator, fault
        return
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_CHOICES:
        yield operator, f"Not a list of 1 to {MAX_CHOICES} strings."
        return
    for number, item in enumerate(value):
        if fault := _fault_of_text(item, MAX_TEXT):
            yield f"{operator}.{number}", fault


def _fault_of_text(value: object, most: int) -> str:
    if not isinstance(value, str):
        return "Not a string. Write numbers and booleans in quotes, such as '17' and 'true'."
    if not value or len(value) > most:
        return f"Not 1 to {most} characters."
    if not value.isprintable():
        return "Contains an unprintable or unassigned character."
    return ""


def _identifies(path: Path, ids: Collection[Path]) -> bool:
    """Return whether the claim is an id: a permanent id of the platform, or named like an id."""
    return path in ids or re.search(r"(?:^|[_-])u?u?ids?$", path[-1]) is not None


def _operator(condition: Condition) -> str:
    return next((operator for operator in OPERATORS if operator in condition), "")


def _judge(condition: Condition, claims: Mapping[str, Any]) -> Verdict:
    claim, operator = condition["claim"], _operator(condition)
    found, wanted = value_at(claims, claim), condition.get(operator)
    items = found if isinstance(found, list) else [found]
    texts = [text for text in map(text_of, items) if text is not None]
    met = any(_meets(operator, wanted, text) for text in texts)
    return Verdict(claim, {operator: wanted}, found, met)


def _meets(operator: str, wanted: Any, text: str) -> bool:
    if operator == "equals":
        return bool(text == wanted)
    if operator == "in":
        return text in wanted
    return operator == "glob" and matches(wanted, text)


def _segment_matches(glob: str, text: str) -> bool:
    first, *others = glob.split("*")
    if not others:
        return text == first
    *middle, last = others
    end = len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last) and len(first) <= end):
        return False
    position = len(first)
    for part in middle:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
