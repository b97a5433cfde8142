"""The central rule: callers cannot grant more than they have."""

import datetime as dt
import itertools
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apikeys.bindings import EVERYWHERE, NOWHERE, Binding
from apikeys.errors import GrantExceeded
from apikeys.grants import EVERYTHING, Grant

A, B = uuid.uuid4(), uuid.uuid4()
ONE, BOTH = frozenset({A}), frozenset({A, B})
BINDINGS = {
    "everywhere": EVERYWHERE,
    "nowhere": NOWHERE,
    "cluster A": Binding(cluster_id=A),
    "cluster B": Binding(cluster_id=B),
    "component A": Binding(component_ids=ONE),
    "components": Binding(component_ids=BOTH),
    "environment A": Binding(environment_ids=ONE),
    "component A in environment A": Binding(component_ids=ONE, environment_ids=ONE),
    "components in environment A": Binding(component_ids=BOTH, environment_ids=ONE),
    "application A": Binding(application_ids=ONE),
    "applications": Binding(application_ids=BOTH),
    "component A of application A": Binding(component_ids=ONE, application_ids=ONE),
    "application A in environment A": Binding(environment_ids=ONE, application_ids=ONE),
}
PAIRS = list(itertools.product(BINDINGS, repeat=2))


def reach(binding: Binding) -> set[tuple[object, ...]]:
    """Return all that the binding lets through, of a world of two."""
    places = itertools.product((A, B), (A, B), (A, B, None))
    states = {("state", *place) for place in places if binding.allows_state(*place)}
    return states | {("cluster", c) for c in (A, B) if binding.allows_cluster(c)}


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_intersection_allows_only_states_that_both_bindings_allow(one: str, other: str) -> None:
    first, second = BINDINGS[one], BINDINGS[other]

    assert reach(first.intersection(second)) == reach(first) & reach(second)


def test_intersection_of_two_clusters_is_empty() -> None:
    """Lists of components look at those alone, and lists of environments at those."""
    common = Binding(cluster_id=A).intersection(Binding(cluster_id=B))

    assert common.component_ids == common.environment_ids == frozenset()


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_within_is_never_wider(one: str, other: str) -> None:
    first, second = BINDINGS[one], BINDINGS[other]

    if first.is_within(second):
        assert reach(first) <= reach(second)
    # In a world with more than two, two components are not all of them.
    assert first.is_within(second) is (first.intersection(second) == first)


_IDS = st.none() | st.sampled_from([ONE, frozenset({B}), BOTH])
_BOUND = st.builds(Binding, st.none(), _IDS, _IDS, _IDS) | st.sampled_from(list(BINDINGS.values()))


@given(wanted=_BOUND, held=_BOUND)
def test_intersection_of_any_two_bindings_is_exact(wanted: Binding, held: Binding) -> None:
    narrowed = wanted.within_applications_of(held)

    common = wanted.intersection(held)
    assert reach(common) == reach(wanted) & reach(held)
    assert common.is_empty or (common.is_within(held) and common.is_within(wanted))
    assert reach(narrowed) <= reach(wanted)
    for one in (wanted, narrowed):
        assert Binding.of_columns(*one.columns().values()) == one
        if one.is_within(held):
            assert reach(one) <= reach(held)
        else:
            # In a world with more than two, two are not all.
            assert one.intersection(held) != one


@pytest.mark.parametrize("name", BINDINGS)
def test_columns_keep_a_binding(name: str) -> None:
    columns = BINDINGS[name].columns()

    assert Binding.of_columns(*columns.values()) == BINDINGS[name]


def test_it_is_described_for_the_trail() -> None:
    assert EVERYWHERE.described() is None
    assert Binding(cluster_id=A).described() == {
        "cluster_id": str(A), "component_ids": None, "environment_ids": None,
        "application_ids": None,
    }  # fmt: skip
    assert Binding(component_ids=ONE).described() == {
        "cluster_id": None, "component_ids": [str(A)], "environment_ids": None,
        "application_ids": None,
    }  # fmt: skip


def test_equal_and_narrower_grants_are_allowed() -> None:
    held = Grant(frozenset({"state:read", "state:write"}), Binding(component_ids=BOTH))

    held.check(held)
    held.check(Grant(frozenset({"state:read"}), Binding(component_ids=ONE)))
    EVERYTHING.check(held)


def test_missing_scopes_are_named() -> None:
    held = Grant(frozenset({"state:read"}))

    with pytest.raises(GrantExceeded) as caught:
        held.check(Grant(frozenset({"state:write", "state:admin", "state:read"})))

    assert caught.value.metadata == {"scopes": "state:admin,state:write"}


def test_scope_includes_weaker_scopes() -> None:
    writer, agent = Grant(frozenset({"cluster:write"})), Grant(frozenset({"cluster:report"}))

    writer.check(agent)
    assert agent.is_within(writer)
    assert not writer.is_within(agent)
    assert agent.intersection(writer) == agent
    assert writer.intersection(agent) == agent
    with pytest.raises(GrantExceeded):
        agent.check(writer)


END = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
SOONER = END - dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("end", "latest", "within"),
    [
        (None, None, True), (END, None, True), (END, END, True), (SOONER, END, True),
        (END, SOONER, False), (None, END, False),
    ],
)  # fmt: skip
def test_an_end_is_a_part_of_it(
    end: dt.datetime | None, latest: dt.datetime | None, within: bool
) -> None:
    wanted = Grant(frozenset({"state:read"}), expires_at=end)
    held = Grant(frozenset({"state:read"}), expires_at=latest)

    assert wanted.is_within(held) is within
    assert wanted.intersection(held).is_within(held)
    assert wanted.intersection(held).is_within(wanted)
    if within:
        held.check(wanted)
    else:
        with pytest.raises(GrantExceeded, match=r"expires at 20\d\d-"):
            held.check(wanted)


def test_a_wider_binding_is_refused() -> None:
    held = Grant(frozenset({"state:read"}), Binding(component_ids=ONE))

    with pytest.raises(GrantExceeded, match="binding"):
        held.check(Grant(frozenset({"state:read"}), Binding(component_ids=BOTH)))


def test_a_state_is_inside_when_its_component_and_its_environment_are() -> None:
    component, environment, other = (uuid.UUID(int=number) for number in (1, 2, 3))
    binding = Binding(
        component_ids=frozenset({component}), environment_ids=frozenset({environment})
    )

    assert binding.allows_state(component, environment, None)
    assert not binding.allows_state(component, other, None)
    assert not binding.allows_state(other, environment, None)
    assert EVERYWHERE.allows_state(other, other, other)
    assert not Binding(cluster_id=other).allows_state(component, environment, None)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_components_alone_are_meant_within_the_applications_of_their_maker(
    one: str, other: str
) -> None:
    wanted, held = BINDINGS[one], BINDINGS[other]
    narrowed = wanted.within_applications_of(held)

    assert reach(narrowed) <= reach(wanted)
    if wanted.component_ids is None or wanted.application_ids is not None:
        assert narrowed == wanted
    else:
        assert narrowed.application_ids == held.application_ids
    if other == "application A":
        assert narrowed.is_within(held) is (
            wanted.cluster_id is None and narrowed.application_ids == ONE
        )


def test_earlier_release_denies_application_bindings() -> None:
    columns = Binding(application_ids=ONE).columns()

    assert columns["bound_component_ids"] == [str(uuid.UUID(int=0))]
    *others, _applications = columns.values()
    older = Binding.of_columns(*others, None)
    assert not older.allows_state(A, B, A)
