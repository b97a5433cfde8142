import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.kubernetes.quantities import (
    INT64_MAX,
    NANOS,
    InvalidQuantityError,
    parse_quantity,
    to_bytes,
    to_millicores,
)

# The oracle: the table of https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
    "Pi": Fraction(1024**5),
    "Ei": Fraction(1024**6),
}
digits = st.text("0123456789", min_size=1, max_size=12)
numbers = st.one_of(
    digits,
    st.builds("{}.{}".format, digits, digits),
    st.builds("{}.".format, digits),
    st.builds(".{}".format, digits),
)
exponents = st.builds(
    "{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 30)
)
signs = st.sampled_from(["", "+", "-"])


def exact(sign: str, number: str, suffix: str) -> Fraction:
    if suffix[:1] in {"e", "E"} and suffix[1:]:
        scale = SUFFIXES[suffix] if suffix == "Ei" else Fraction(10) ** int(suffix[1:])
    else:
        scale = SUFFIXES[suffix]
    value = Fraction(f"0{number}" if number[0] == "." else number.removesuffix(".")) * scale
    return -value if sign == "-" else value


def away_from_zero(value: Fraction) -> int:
    whole = -(-abs(value) // 1)
    return int(whole if value >= 0 else -whole)


@given(signs, numbers, st.one_of(st.sampled_from(sorted(SUFFIXES)), exponents))
def test_quantities_agree_with_fractions(sign: str, number: str, suffix: str) -> None:
    value = exact(sign, number, suffix)
    assert parse_quantity(sign + number + suffix) == away_from_zero(value * NANOS)


@given(st.text("0123456789.eEinumkKMGTP+-_aNf ", max_size=8))
def test_only_the_documented_form_is_accepted(text: str) -> None:
    form = re.fullmatch(
        r"[+-]?(\d+|\d+\.\d*|\.\d+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?0*\d{1,3})?", text
    )
    if form:
        parse_quantity(text)
    else:
        with pytest.raises(InvalidQuantityError):
            parse_quantity(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1K", "1ki", "1 Ki", " 1", "1\n", "NaN", "inf", "Infinity", "1_000", "0x10"),
        *(
            ".",
            ".Gi",
            "+.",
            "+",
            "-",
            "--1",
            "1e",
            "1e+",
            "1e1.5",
            "1e1000",
            "1Kim",
            "1mm",
            "m",
            "Ki",
        ),
        *("\uff11", "\u0663", "1" * 65, "1e99999999999999999999", "1,5", "1.2.3"),
    ],
)
def test_invalid_quantities_are_refused(text: str) -> None:
    with pytest.raises(InvalidQuantityError) as refusal:
        parse_quantity(text)
    assert len(str(refusal.value)) < 120


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("250m", 250_000_000),
        ("0.5", 500_000_000),
        (".5", 500_000_000),
        # API servers store these as they are.
        ("5.", 5 * NANOS),
        ("5.Gi", 5 * 2**30 * NANOS),
        ("-5.e1", -50 * NANOS),
        ("+1", NANOS),
        ("-1", -NANOS),
        ("315735516n", 315_735_516),
        ("155516Ki", 155_516 * 1024 * NANOS),
        ("1.5Gi", 1_610_612_736 * NANOS),
        ("100M", 100_000_000 * NANOS),
        ("1E", 10**18 * NANOS),
        ("1E3", 1000 * NANOS),
        ("1e3", 1000 * NANOS),
        ("1e-3", 1_000_000),
        ("1e0003", 1000 * NANOS),
        ("8Ei", 2**63 * NANOS),
        # Kubernetes keeps nothing finer than a nano, and rounds away from zero.
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1.5n", 2),
        ("0.0001u", 1),
        ("1e-999", 1),
    ],
)
def test_quantities_are_read(text: str, nanos: int) -> None:
    assert parse_quantity(text) == nanos


def test_the_longest_text_is_64_characters() -> None:
    assert parse_quantity("0" * 64) == 0


@pytest.mark.parametrize(
    ("nanos", "millicores"),
    [
        (0, 0),
        (1, 1),
        (999_999, 1),
        (1_000_000, 1),
        (1_000_001, 2),
        (-1, 0),
        (10**40, INT64_MAX),
    ],
)
def test_cpu_is_rounded_up_to_millicores(nanos: int, millicores: int) -> None:
    assert to_millicores(nanos) == millicores


@pytest.mark.parametrize(
    ("nanos", "whole"),
    [(0, 0), (1, 1), (NANOS, 1), (NANOS + 1, 2), (2**63 * NANOS, INT64_MAX)],
)
def test_memory_is_rounded_up_to_bytes(nanos: int, whole: int) -> None:
    assert to_bytes(nanos) == whole


@given(st.lists(st.integers(0, 10**12), max_size=20))
def test_a_sum_is_rounded_once(amounts: list[int]) -> None:
    total = sum(parse_quantity(f"{amount}n") for amount in amounts)
    assert to_millicores(total) == -(-Fraction(sum(amounts), 10**6) // 1)
