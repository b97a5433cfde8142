"""Rows and values to make expressions of: few and nasty, so that rows often match."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import strategies as st

from tests.filterlang.rows import HEALTHS, KINDS, Row

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
SMALL_INTEGERS = (-(2**31), -1, 0, 1, 2, 2**31 - 1)
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
    replicas=st.none() | st.sampled_from(SMALL_INTEGERS),
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
    """Return the text with A to Z in lower case, as `~=` compares it."""
    return text.encode().lower()


@st.composite
def quoted(draw, text):
    # A backslash before the quote would escape it, so some texts fit only a single kind of quote.
    fitting = [quote for quote in "'\"" if f"\\{quote}" not in f"{text}{quote}"]
    quote = draw(st.sampled_from(fitting))
    inside = draw(st.sampled_from([f"\\{quote}", quote * 2]))
    return f"{quote}{text.replace(quote, inside)}{quote}"


def writable(texts):
    """A text that ends with a backslash cannot be written in the language."""
    return st.sampled_from([text for text in texts if not text.endswith("\\")])
