"""Random expressions with their meaning: a text, and a Python predicate over rows.

The predicate is built from the same choices as the text, independently of the parser.
"""

import operator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.filterlang.rows import HEALTH_PREFIX, HEALTHS, KINDS
from tests.filterlang.values import (
    INTEGERS,
    KEYS,
    MOMENTS,
    TEXTS,
    UUIDS,
    keyword,
    lower,
    quoted,
    some_space,
    space,
    writable,
)


class Expression(NamedTuple):
    text: str
    selects: Any


COMPARED = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "~=": lambda value, text: lower(text) in lower(value),
    "CONTAINS": lambda value, text: text in value,
    "STARTS_WITH": str.startswith,
    "ENDS_WITH": str.endswith,
}
EQUAL = ("=", "!=")
ORDERED = ("=", "!=", "<", "<=", ">", ">=")
TEXTUAL = ("=", "!=", "~=", "CONTAINS", "STARTS_WITH", "ENDS_WITH")


def missing(name):
    """Return the result of a comparison for a row without a value: true only if negative."""
    return name in {"!=", "NOT IN"}


@st.composite
def comparison(draw, ref, read, values, write, *, operators):
    name = draw(st.sampled_from(operators))
    value = draw(values)
    word = draw(keyword(name))
    text = f"{ref}{draw(space)}{word}{draw(space) if name in ORDERED else ' '}{draw(write(value))}"

    def selects(row):
        actual = read(row)
        return missing(name) if actual is None else COMPARED[name](actual, value)

    return Expression(text, selects)


@st.composite
def membership(draw, ref, read, values, write):
    name = draw(st.sampled_from(["IN", "NOT IN"]))
    chosen = draw(st.lists(values, min_size=1, max_size=3))
    listed = f"{draw(space)},{draw(space)}".join([draw(write(value)) for value in chosen])
    word = draw(some_space).join([draw(keyword(part)) for part in name.split()])

    def selects(row):
        return (read(row) in chosen) is (name == "IN")

    return Expression(f"{ref}{draw(space)}{word}{draw(space)}({listed})", selects)


@st.composite
def between(draw, ref, read, values, write):
    low, high = draw(values), draw(values)
    words = draw(keyword("BETWEEN")), draw(keyword("AND"))
    text = f"{ref} {words[0]} {draw(write(low))} {words[1]} {draw(write(high))}"
    return Expression(text, lambda row: read(row) is not None and low <= read(row) <= high)


@st.composite
def presence(draw, ref, read):
    name = draw(st.sampled_from(["EXISTS", "IS NULL", "IS NOT NULL"]))
    words = draw(some_space).join([draw(keyword(part)) for part in name.split()])
    return Expression(
        f"{ref}{draw(space)}{words}", lambda row: (read(row) is None) is (name == "IS NULL")
    )


@st.composite
def field(draw, name):
    return f"field[{draw(space)}{draw(quoted(name))}{draw(space)}]"


@st.composite
def label_term(draw):
    key = draw(writable(KEYS))
    if draw(st.booleans()):
        ref = f"labels[{draw(quoted(key))}]"
    else:
        ref = f"field[{draw(quoted(f'labels.{key}'))}]"

    def read(row):
        return row.labels.get(key)

    texts = writable(TEXTS)
    return draw(
        comparison(ref, read, texts, quoted, operators=TEXTUAL)
        | membership(ref, read, texts, quoted)
        | presence(ref, read)
    )


@st.composite
def text_term(draw):
    name = draw(st.sampled_from(["name", "note"]))
    ref, read, texts = draw(field(name)), operator.attrgetter(name), writable(TEXTS)
    terms = comparison(ref, read, texts, quoted, operators=TEXTUAL)
    terms |= membership(ref, read, texts, quoted)
    return draw(terms | presence(ref, read) if name == "note" else terms)


@st.composite
def equality_term(draw):
    name, column, values, write = draw(
        st.sampled_from(
            [
                (
                    "id",
                    "uid",
                    UUIDS,
                    lambda value: st.sampled_from([str(value), str(value).upper()]),
                ),
                ("kind", "kind", KINDS, st.just),
                (
                    "health_status",
                    "health",
                    HEALTHS,
                    lambda value: st.sampled_from(
                        [value, HEALTH_PREFIX + value.removeprefix(HEALTH_PREFIX)]
                    ),
                ),
            ]
        )
    )
    ref, read, value = draw(field(name)), operator.attrgetter(column), st.sampled_from(values)

    def written(value):
        return write(value).flatmap(quoted)

    return draw(
        comparison(ref, read, value, written, operators=EQUAL)
        | membership(ref, read, value, written)
    )


@st.composite
def ordered_term(draw):
    name, column = draw(
        st.sampled_from(
            [("size_bytes", "size"), ("replicas", "replicas"), ("created_at", "created_at")]
        )
    )
    ref, read = draw(field(name)), operator.attrgetter(column)
    if name == "created_at":
        values = MOMENTS

        def written(value):
            return quoted(value.isoformat().replace("+00:00", "Z"))

    else:
        values = INTEGERS

        def written(value):
            return st.sampled_from([str(value), f"'{value}'"])

    value = st.sampled_from(values)
    return draw(
        comparison(ref, read, value, written, operators=ORDERED)
        | membership(ref, read, value, written)
        | between(ref, read, value, written)
        | presence(ref, read)
    )


@st.composite
def boolean_term(draw):
    name, read = draw(
        st.sampled_from(
            [
                ("paused", operator.attrgetter("paused")),
                ("locked", lambda row: row.lock_id is not None),
            ]
        )
    )

    def written(value):
        word = str(value)
        return st.sampled_from([word, word.lower(), f"'{word}'"])

    return draw(comparison(draw(field(name)), read, st.booleans(), written, operators=EQUAL))


terms = label_term() | text_term() | equality_term() | ordered_term() | boolean_term()


@st.composite
def negated(draw, inner):
    child = draw(inner)
    word = draw(keyword("NOT"))
    return Expression(f"{word} ({child.text})", lambda row: not child.selects(row))


@st.composite
def joined(draw, inner):
    name = draw(st.sampled_from(["AND", "OR"]))
    children = draw(st.lists(inner, min_size=2, max_size=3))
    texts = [f"({child.text})" for child in children]
    word = f"{draw(space)}{draw(keyword(name))}{draw(space)}"
    verdict = all if name == "AND" else any
    return Expression(
        word.join(texts), lambda row: verdict(child.selects(row) for child in children)
    )


@st.composite
def unparenthesised(draw, inner):
    """NOT a AND b OR c, where precedence alone decides."""
    one, two, three = draw(inner), draw(inner), draw(inner)
    return Expression(
        f"NOT {one.text} AND {two.text} OR {three.text}",
        lambda row: (not one.selects(row) and two.selects(row)) or three.selects(row),
    )


expressions = st.recursive(
    terms | unparenthesised(terms), lambda inner: negated(inner) | joined(inner), max_leaves=6
)
