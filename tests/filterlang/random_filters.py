"""Random filters of a list, each with a predicate over its rows in plain Python.

The predicate is made from the same choices as the text, without the parser and the database.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

Row = dict[str, Any]
Reader = Callable[[Row], list[Any]]

ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MATCHES: dict[str, Callable[[str, str], bool]] = {
    "CONTAINS": lambda value, text: text in value,
    "STARTS_WITH": str.startswith,
    "ENDS_WITH": str.endswith,
    "~=": lambda value, text: text.encode().lower() in value.encode().lower(),
}
NEGATED = {"!=": "=", "NOT IN": "IN", "IS NULL": "EXISTS", "IS NOT NULL": "EXISTS"}
TEXTS = ("", " ", "%", "_", "*", "a", "A", "prod", "it's", "\u00e9", "\\b", "0", "null")
INTEGERS = (
    -(2**63),
    -(2**32),
    -(2**31) - 1,
    -1,
    0,
    1,
    2**31 - 1,
    2**31,
    2**32,
    2**32 + 1,
    2**63 - 1,
)
NOWHERE = "00000000-0000-4000-8000-000000000000"
_TIME = re.compile(r"(.+:\d\d)(?:\.(\d+))?Z")


class Filter(NamedTuple):
    text: str
    selects: Callable[[Row], bool]


class FilterField(NamedTuple):
    """A field as the OpenAPI document describes it, and its values in a row of the answer.

    A field of several values, such as the images of a workload, matches by any of them.
    """

    written: str
    type: str
    operators: Sequence[str]
    choices: Sequence[str]
    read: Reader


def nanoseconds(text: str) -> int:
    """Return a time as a number, with all of its digits."""
    found = _TIME.fullmatch(text)
    assert found, text
    whole = dt.datetime.fromisoformat(f"{found[1]}+00:00")
    since = whole - dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + int((found[2] or "0").ljust(9, "0"))


def term(random: Random, field: FilterField, rows: Sequence[Row]) -> Filter:
    """Return a term with a value of some row, or a value near it."""
    chosen = random.choice(field.operators)
    name, key = field.written, None
    if "<key>" in name:
        keys = sorted({key for row in rows for key in row["labels"]})
        key = random.choice([*keys, "no-such-key"])
        name = name.replace("<key>", key)
    ref = name if key else f"field['{name}']"

    def read(row: Row) -> list[Any]:
        values = [row["labels"].get(key)] if key else field.read(row)
        return [value for value in values if value is not None]

    known = [value for row in rows for value in read(row)]
    values = [_value(random, field, known) for _ in range(random.randint(1, 3))]
    if chosen in {"EXISTS", "IS NULL", "IS NOT NULL"}:
        text = f"{ref} {chosen}"
    elif chosen in {"IN", "NOT IN"}:
        text = f"{ref} {chosen} ({', '.join(_written(random, field, value) for value in values)})"
    elif chosen == "BETWEEN":
        values = [values[0], _value(random, field, known)]
        low, high = (_written(random, field, value) for value in values)
        text = f"{ref} BETWEEN {low} AND {high}"
    else:
        values = values[:1]
        text = f"{ref} {chosen} {_written(random, field, values[0])}"
    positive = NEGATED.get(chosen, chosen)
    wanted = [_comparable(field, value) for value in values]

    def selects(row: Row) -> bool:
        found = any(_holds(positive, _comparable(field, value), wanted) for value in read(row))
        return found is not (chosen in {"!=", "NOT IN", "IS NULL"})

    return Filter(text, selects)


def _holds(chosen: str, value: Any, wanted: Sequence[Any]) -> bool:
    if chosen == "EXISTS":
        return True
    if chosen == "BETWEEN":
        return bool(wanted[0] <= value <= wanted[1])
    if chosen in {"=", "IN"}:
        return value in wanted
    return bool((ORDER.get(chosen) or MATCHES[chosen])(value, wanted[0]))


def _comparable(field: FilterField, value: Any) -> Any:
    return nanoseconds(value) if field.type == "timestamp" else value


def _value(random: Random, field: FilterField, known: Sequence[Any]) -> Any:
    near = random.choice(known) if known and random.random() < 0.7 else None
    made: Any = {
        "boolean": lambda: random.random() < 0.5,
        "enum": lambda: random.choice(field.choices),
        "uuid": lambda: near or NOWHERE,
        "integer": lambda: _integer(random, near),
        "timestamp": lambda: _time(random, near or "2026-01-31T12:00:00Z"),
        "identifier": lambda: near or random.choice(TEXTS),
    }.get(field.type, lambda: _text(random, near))()
    return made


def _integer(random: Random, near: int | None) -> int:
    if near is None:
        return random.choice(INTEGERS)
    return min(near + random.choice((-1, 0, 0, 1)), INTEGERS[-1])


def _time(random: Random, near: str) -> str:
    digits = random.choice(("0", "000001", "0000005", "999999999"))
    return random.choice((near, near, re.sub(r"(\.\d+)?Z", f".{digits}Z", near)))


def _text(random: Random, near: str | None) -> str:
    if near is None:
        return random.choice(TEXTS)
    start, end = sorted((random.randint(0, len(near)), random.randint(0, len(near))))
    pieces = (near, near.upper(), near[start:end], near[:end], near[start:])
    # A value in quotes cannot end with a backslash.
    return random.choice(pieces).rstrip("\\")


def _written(random: Random, field: FilterField, value: Any) -> str:
    if isinstance(value, bool | int) and random.random() < 0.5:
        return str(value).lower()
    text = str(value).lower() if isinstance(value, bool) else str(value)
    quote = random.choice("'\"")
    return f"{quote}{text.replace(quote, quote * 2)}{quote}"


def random_filter(
    random: Random, fields: Sequence[FilterField], rows: Sequence[Row], depth: int = 3
) -> Filter:
    """Return a term, or smaller filters joined by NOT, AND and OR."""
    form = random.choice(("term", "term", "not", "and", "or", "mixed")) if depth else "term"
    if form == "term":
        return term(random, random.choice(fields), rows)
    one, two, three = (random_filter(random, fields, rows, depth - 1) for _ in range(3))
    if form == "not":
        return Filter(f"NOT ({one.text})", lambda row: not one.selects(row))
    if form == "and":
        text = f"({one.text}) AND ({two.text})"
        return Filter(text, lambda row: one.selects(row) and two.selects(row))
    if form == "or":
        text = f"({one.text}) OR ({two.text})"
        return Filter(text, lambda row: one.selects(row) or two.selects(row))
    return Filter(
        f"({one.text}) AND NOT ({two.text}) OR ({three.text})",
        lambda row: (one.selects(row) and not two.selects(row)) or three.selects(row),
    )
