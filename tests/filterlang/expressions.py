"""Expressions made together with what they mean: a text, and a predicate over rows in Python.

The predicate is made from the same choices as the text and never from the text, so that it knows
nothing of the parser. Values are few and nasty, so that rows often match.
"""

import operator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from hypothesis import strategies as st

from tests.filterlang.rows import HEALTH_PREFIX, HEALTHS, KINDS, Row


class Expression(NamedTuple):
    text: str
    selects: Any


TEXTS = (
    *(
        "",
        " ",
        "web",
        "Web",
        "WEB",
        "we%",
        "w_b",
        "%",
        "_",
        "*",
        "?",
        "[w]eb",
        "]",
        "^",
        "a'b",
        'a"b',
    ),
    *(
        "é",
        "É",
        "\\",
        "\\b",
        "b\\w",
        "''",
        "\u0131",
        "😀",
        "x y",
        "a\nb",
        "0",
        "true",
        "--",
        "$.a",
        "{}",
    ),
)
KEYS = (
    "app",
    "app.kubernetes.io/name",
    "0",
    "",
    "a'b",
    'a"b',
    "a\\b",
    "é",
    "$",
    "App",
    "a__contains",
)
UUIDS = tuple(UUID(int=number << 96 | number) for number in (0, 1, 0xABCDEF, 2**32 - 1))
INTEGERS = (-(2**63), -1, 0, 1, 2, 10, 2**31, 2**63 - 1)
MOMENTS = tuple(
    datetime(2026, 1, 31, 12, tzinfo=UTC) + offset
    for offset in (
        timedelta(0),
        timedelta(microseconds=1),
        timedelta(hours=5),
        timedelta(days=-400),
    )
)

rows = st.builds(
    Row,
    uid=st.none() | st.sampled_from(UUIDS),
    name=st.sampled_from(TEXTS),
    note=st.none() | st.sampled_from(TEXTS),
    kind=st.sampled_from(KINDS),
    health=st.none() | st.sampled_from(HEALTHS),
    size=st.none() | st.sampled_from(INTEGERS),
    created_at=st.none() | st.sampled_from(MOMENTS),
    lock_id=st.none() | st.sampled_from(UUIDS),
    paused=st.none() | st.booleans(),
    labels=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(TEXTS), max_size=3),
)

space = st.sampled_from(["", " ", "  ", "\t", "\r\n"])
some_space = st.sampled_from([" ", "  ", "\t", "\r\n"])


def keyword(word):
    return st.sampled_from([word, word.lower(), word.title()])


def lower(text):
    """The case of A to Z is what `~=` ignores."""
    return text.encode().lower()


@st.composite
def quoted(draw, text):
    # A backslash before the quote would be its escape, so some texts fit one kind of quote only.
    fitting = [quote for quote in "'\"" if f"\\{quote}" not in f"{text}{quote}"]
    quote = draw(st.sampled_from(fitting))
    inside = draw(st.sampled_from([f"\\{quote}", quote * 2]))
    return f"{quote}{text.replace(quote, inside)}{quote}"


def writable(texts):
    """A text that ends with a backslash cannot be written in the language."""
    return st.sampled_from([text for text in texts if not text.endswith("\\")])


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
    """What a comparison says of a row without a value: only the negative ones hold."""
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
    return draw(
        comparison(ref, read, texts, quoted, operators=TEXTUAL)
        | membership(ref, read, texts, quoted)
    )


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
    if draw(st.booleans()):
        ref, read, values = draw(field("size_bytes")), operator.attrgetter("size"), INTEGERS

        def written(value):
            return st.sampled_from([str(value), f"'{value}'"])
    else:
        ref, read, values = draw(field("created_at")), operator.attrgetter("created_at"), MOMENTS

        def written(value):
            return quoted(value.isoformat().replace("+00:00", "Z"))

    value = st.sampled_from(values)
    return draw(
        comparison(ref, read, value, written, operators=ORDERED)
        | membership(ref, read, value, written)
        | between(ref, read, value, written)
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
