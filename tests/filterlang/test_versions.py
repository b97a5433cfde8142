"""Sort keys are in the order of versions that Semantic Versioning 2.0.0 gives."""

import functools
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filterlang.compiler import compile_filter
from filterlang.errors import Code, FilterError
from filterlang.versions import VersionComparison, sort_key
from tests.filterlang.rows import VersionedFilters

#: From the lowest to the highest, with the example of the standard in it.
IN_ORDER = [
    "0", "0.0.1", "0.1.0-rc1", "0.1.0", "0.9", "0.10", "1.0.0-0", "1.0.0-2", "1.0.0-10",
    "1.0.0-11a", "1.0.0-a", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta",
    "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2", "1.10", "2.0.0--1",
    "2.0.0-A", "2.0.0-a", "2.0.0-a.0", "2.0.0-a-b", "2.0.0-a0", "2", "4.67.0", "5.0.0-beta1", "5",
    "5.31.0", "10", "100.0.0", "99999999999999999999.0.0",
]  # fmt: skip
EQUAL = [("5", "5.0", "5.0.0", "5.0.0+x", "5+a.b-c.01"), ("1.2-a+b", "1.2.0-a")]


def before(one, other):
    """Compare two versions by the rules of the standard; return -1, 0 or 1."""

    def parts(version):
        core, _, pre = version.partition("-")
        return [int(n) for n in core.split(".")], pre.split(".") if pre else None

    (numbers, pre), (others, other_pre) = parts(one), parts(other)
    if numbers != others:
        return -1 if numbers < others else 1
    if pre is None or other_pre is None:
        return (pre is None) - (other_pre is None)
    for mine, its in zip(pre, other_pre, strict=False):
        if mine == its:
            continue
        if mine.isdigit() and its.isdigit():
            return -1 if int(mine) < int(its) else 1
        if mine.isdigit() != its.isdigit():
            return -1 if mine.isdigit() else 1
        return -1 if mine < its else 1
    return (len(pre) > len(other_pre)) - (len(pre) < len(other_pre))


def test_versions_are_ordered():
    keys = [sort_key(version) for version in IN_ORDER]
    for (one, first), (other, second) in itertools.pairwise(zip(IN_ORDER, keys, strict=True)):
        assert first < second, (one, other)
    for same in EQUAL:
        assert len({sort_key(version) for version in same}) == 1


NUMBERS = st.integers(0, 10**12).map(str)
IDENTIFIERS = NUMBERS | st.from_regex(r"[0-9A-Za-z-]*[A-Za-z-][0-9A-Za-z-]*", fullmatch=True).map(
    lambda text: text[:8]
).filter(lambda text: not text.isdigit())
VERSIONS = st.builds(
    lambda core, pre: ".".join(core) + ("-" + ".".join(pre) if pre else ""),
    st.lists(NUMBERS, min_size=3, max_size=3),
    st.lists(IDENTIFIERS, max_size=4),
)


@pytest.mark.slow
@given(st.lists(VERSIONS, min_size=2, max_size=5))
def test_order_of_any_versions_is_total(versions):
    keys = {version: sort_key(version) for version in versions}
    for one, other in itertools.product(versions, repeat=2):
        expected = before(one, other)
        assert (keys[one] > keys[other]) - (keys[one] < keys[other]) == expected
    by_key = sorted(versions, key=lambda version: keys[version])
    assert [keys[v] for v in by_key] == [
        keys[v] for v in sorted(versions, key=functools.cmp_to_key(before))
    ]


@given(VERSIONS)
def test_keys_are_of_printed_ascii(version):
    assert sort_key(version).isascii()
    assert sort_key(version).isprintable()


@pytest.mark.parametrize(
    "text",
    ["", "v5", "5.", ".5", "5.0.0.0", "05", "5.01", "-5", "5-", "5-a..b", "5+", "5 ", "5.x", "~> 5",
     "\u0665", "5.0.0-é"],
)  # fmt: skip
def test_invalid_versions_have_no_order(text):
    assert sort_key(text) is None


def test_a_version_has_at_most_a_hundred_characters():
    assert sort_key("1" * 100) is not None
    assert sort_key("1" * 101) is None


def test_filter_compares_versions():
    compiled = compile_filter(VersionedFilters, "field['uses.a.b/c.version'] < '5'")
    assert compiled.children == [("uses__version", VersionComparison("a.b/c", "<", sort_key("5")))]
    compiled = compile_filter(VersionedFilters, "field['uses.c.version'] != 5")
    assert compiled.negated
    compiled = compile_filter(VersionedFilters, "field['uses.c.version'] IS NULL")
    assert compiled.children == [("uses__version", VersionComparison("c", "EXISTS"))]


@pytest.mark.parametrize(
    ("text", "code", "position", "suggestion"),
    [
        ("field['uses.c.version'] < 'v5'", Code.TYPE, 26, "write '5'"),
        ("field['uses.c.version'] < 'five'", Code.TYPE, 26, ""),
        ("field['uses.c.version'] CONTAINS '5'", Code.OPERATOR, 24,
         "allowed: =, !=, <, <=, >, >=, EXISTS, IS NULL, IS NOT NULL"),
        *((f"field['{name}'] < '5'", Code.UNKNOWN_FIELD, 6, "write uses.<source>.version")
          for name in ("uses", "uses.c", "uses.version", "uses..version.", "uses.c.versions")),
        ("field['name.version'] = '5'", Code.UNKNOWN_FIELD, 6, None),
    ],
)  # fmt: skip
def test_invalid_versions_are_refused(text, code, position, suggestion):
    with pytest.raises(FilterError) as refused:
        compile_filter(VersionedFilters, text)
    assert (refused.value.code, refused.value.position) == (code, position)
    assert suggestion is None or refused.value.suggestion == suggestion
