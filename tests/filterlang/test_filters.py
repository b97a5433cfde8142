import pytest
from django.core.exceptions import ValidationError

from filterlang.filters import EnumFilter, IntegerFilter


def test_an_enum_without_a_prefix_takes_its_choices():
    field = EnumFilter(choices=[("A", "a"), ("B", "b")]).field
    assert field.names == {"A": "A", "B": "B"}


def test_a_prefix_may_be_written_and_left_out():
    field = EnumFilter(choices=[("P_A", "a"), ("B", "b")], prefix="P_").field
    assert field.names == {"P_A": "P_A", "B": "B", "A": "P_A", "P_B": "B"}
    assert field.clean("P_B") == "B"


def test_a_choice_is_never_taken_for_another():
    # The short form of the first is the second itself.
    field = EnumFilter(choices=[("P_A", "a"), ("A", "b")], prefix="P_").field
    assert (field.clean("P_A"), field.clean("A")) == ("P_A", "A")


def test_an_enum_is_a_form_field_too():
    with pytest.raises(ValidationError):
        EnumFilter(choices=[("A", "a")]).field.clean("C")


def test_an_integer_is_within_int64_unless_declared_narrower():
    wide, narrow = IntegerFilter().field, IntegerFilter(min_value=0).field
    assert (wide.min_value, wide.max_value) == (-(2**63), 2**63 - 1)
    assert (narrow.min_value, narrow.max_value) == (0, 2**63 - 1)
