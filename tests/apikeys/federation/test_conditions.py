"""Conditions on claims: matches, mismatches, and refused conditions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apikeys.federation.conditions import (
    are_met,
    check,
    faults,
    matches,
    path_of,
    pinned,
    value_at,
)

KUBERNETES = {
    "sub": "system:serviceaccount:infra:deployer",
    "kubernetes.io": {
        "namespace": "infra",
        "serviceaccount": {"name": "deployer", "uid": "b1c0"},
    },
}
CIRCLECI = {
    "oidc.circleci.com/project-id": "11c3",
    "oidc.circleci.com/context-ids": ["aa", "bb"],
}


def met(condition, claims):
    (verdict,) = check([condition], claims)
    return verdict.met


@pytest.mark.parametrize(
    ("condition", "claims"),
    [
        ({"claim": "repository_id", "equals": "17"}, {"repository_id": "17"}),
        ({"claim": "repository_id", "equals": "17"}, {"repository_id": 17}),
        ({"claim": "protected", "equals": "true"}, {"protected": True}),
        ({"claim": "ref", "in": ["refs/heads/a", "refs/heads/b"]}, {"ref": "refs/heads/b"}),
        ({"claim": "ref", "glob": "refs/heads/release-*"}, {"ref": "refs/heads/release-7"}),
        ({"claim": "/kubernetes.io/serviceaccount/uid", "equals": "b1c0"}, KUBERNETES),
        ({"claim": "oidc.circleci.com/project-id", "equals": "11c3"}, CIRCLECI),
        ({"claim": "/oidc.circleci.com~1project-id", "equals": "11c3"}, CIRCLECI),
        ({"claim": "oidc.circleci.com/context-ids", "equals": "bb"}, CIRCLECI),
        ({"claim": "/a~0b/c", "equals": "x"}, {"a~b": {"c": "x"}}),
    ],
)
def test_a_condition_is_met(condition, claims):
    assert met(condition, claims)


@pytest.mark.parametrize(
    ("condition", "claims"),
    [
        ({"claim": "repository_id", "equals": "17"}, {}),
        ({"claim": "repository_id", "equals": "17"}, {"repository_id": "171"}),
        ({"claim": "repository_id", "equals": "17"}, {"repository_id": "17 "}),
        ({"claim": "repository_id", "equals": "17"}, {"repository_id": 17.0}),
        ({"claim": "repository_id", "equals": "None"}, {"repository_id": None}),
        ({"claim": "repository_id", "equals": "{}"}, {"repository_id": {}}),
        ({"claim": "repository_id", "equals": "True"}, {"repository_id": True}),
        ({"claim": "ref", "equals": "refs/heads/Main"}, {"ref": "refs/heads/main"}),
        ({"claim": "ref", "in": ["refs/heads/ab"]}, {"ref": "refs/heads/a"}),
        # A glob stays within its segment.
        ({"claim": "ref", "glob": "refs/heads/*"}, {"ref": "refs/heads/a/b"}),
        ({"claim": "sub", "glob": "repo:o/*:main"}, {"sub": "repo:o/a:x:main"}),
        ({"claim": "sub", "glob": "**"}, {"sub": "a/b"}),
        # Wrong paths that result from splitting a name at its dots and slashes.
        ({"claim": "kubernetes.io/namespace", "equals": "infra"}, KUBERNETES),
        ({"claim": "kubernetes.io.namespace", "equals": "infra"}, KUBERNETES),
        ({"claim": "/oidc.circleci.com/project-id", "equals": "11c3"}, CIRCLECI),
        ({"claim": "/kubernetes.io/namespace/x", "equals": "infra"}, KUBERNETES),
        ({"claim": "/oidc.circleci.com~1context-ids/0", "equals": "aa"}, CIRCLECI),
        ({"claim": "oidc.circleci.com/context-ids", "equals": "['aa', 'bb']"}, CIRCLECI),
        # Rows that bypassed validation.
        ({"claim": "ref"}, {"ref": "x"}),
        ({"claim": "ref", "regex": ".*"}, {"ref": "x"}),
    ],
)
def test_a_condition_is_not_met(condition, claims):
    assert not met(condition, claims)


def test_verdict_contains_the_wanted_and_the_actual_value():
    conditions = [
        {"claim": "ref", "glob": "refs/heads/*"},
        {"claim": "environment", "in": ["production"]},
    ]
    first, second = check(conditions, {"ref": "refs/heads/main"})
    assert (first.claim, first.wanted, first.had, first.met) == (
        "ref",
        {"glob": "refs/heads/*"},
        "refs/heads/main",
        True,
    )
    assert (second.wanted, second.had, second.met) == ({"in": ["production"]}, None, False)
    assert not are_met([first, second])
    assert are_met([first])


def test_empty_conditions_are_never_met():
    assert not are_met(check([], {"sub": "anybody"}))


# The segment-wise comparison in the words of another mechanism: a regular expression.
def _by_regular_expression(glob, text):
    pattern = "[^/:]*".join(map(re.escape, glob.split("*")))
    return re.fullmatch(pattern, text, re.DOTALL) is not None


_letters = st.sampled_from(["a", "b", "/", ":", ".", "\n"])
_texts = st.lists(_letters, max_size=12).map("".join)
_globs = st.lists(st.one_of(_letters, st.just("*")), max_size=10).map("".join)


@given(_globs, _texts)
def test_glob_matches_like_a_regular_expression(glob, text):
    assert matches(glob, text) == _by_regular_expression(glob, text)


@given(_globs, st.data())
def test_a_glob_matches_each_value_of_its_form(glob, data):
    fillings = st.text("ab.", max_size=3)
    text = "".join(data.draw(fillings) if one == "*" else one for one in glob)
    assert matches(glob, text)


@given(_globs, _texts)
def test_a_match_has_the_segments_of_its_glob(glob, text):
    if matches(glob, text):
        assert re.sub("[^/:]", "", glob) == re.sub("[^/:]", "", text)


@given(_texts)
def test_a_glob_without_a_star_matches_itself_alone(text):
    assert matches(text, text)
    assert not matches(text, f"{text}a")


@pytest.mark.parametrize(("glob", "text"), [("ab*ba", "aba"), ("a*b*b", "ab")])
def test_glob_suffix_does_not_overlap_the_prefix(glob, text):
    assert not matches(glob, text)


def test_many_stars_compare_each_character_a_few_times():
    looked = 0

    class Counted(str):
        __slots__ = ()

        def find(self, part, start, end):
            nonlocal looked
            found = str.find(self, part, start, end)
            looked += (end if found < 0 else found + len(part)) - start
            return found

    from apikeys.federation import conditions  # noqa: PLC0415 - its own function

    text = Counted("a" * 5000)
    assert not conditions._segment_matches("*a" * 200 + "*b*", text)
    assert looked <= len(text)


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        (None, ""),
        ({}, ""),
        ([], ""),
        ([{"claim": "a", "equals": "b"}] * 21, ""),
        (["repository_id=17"], "0"),
        ([{"claim": "ref"}], "0"),
        ([{"claim": "ref", "equals": "a", "glob": "b"}], "0"),
        ([{"equals": "a"}], "0.claim"),
        ([{"claim": 7, "equals": "a"}], "0.claim"),
        ([{"claim": "", "equals": "a"}], "0.claim"),
        ([{"claim": "a" * 201, "equals": "a"}], "0.claim"),
        ([{"claim": "a\0", "equals": "a"}], "0.claim"),
        ([{"claim": "a\ud800", "equals": "a"}], "0.claim"),
        ([{"claim": "/a~2b", "equals": "a"}], "0.claim"),
        ([{"claim": "/a//b", "equals": "a"}], "0.claim"),
        ([{"claim": "/", "equals": "a"}], "0.claim"),
        ([{"claim": "iss", "equals": "a"}], "0.claim"),
        ([{"claim": "aud", "glob": "*"}], "0.claim"),
        ([{"claim": "/aud", "equals": "a"}], "0.claim"),
        ([{"claim": "ref", "equals": 7}], "0.equals"),
        ([{"claim": "ref", "equals": True}], "0.equals"),
        ([{"claim": "ref", "equals": ""}], "0.equals"),
        ([{"claim": "ref", "equals": "a" * 501}], "0.equals"),
        ([{"claim": "ref", "in": "main"}], "0.in"),
        ([{"claim": "ref", "in": 7}], "0.in"),
        ([{"claim": "ref", "in": ["a"] * 51}], "0.in"),
        ([{"claim": "ref", "in": []}], "0.in"),
        ([{"claim": "ref", "in": ["a", None]}], "0.in.1"),
        ([{"claim": "ref", "glob": ["a"]}], "0.glob"),
        ([{"claim": "ref", "equals": "a"}, {"claim": "repository_id", "glob": "1*"}], "1.glob"),
        ([{"claim": "/kubernetes.io/serviceaccount/uid", "glob": "*"}], "0.glob"),
        ([{"claim": "oidc.circleci.com/project-id", "glob": "*"}], "0.glob"),
        ([{"claim": "/kubernetes.io/namespace", "glob": "*"}], "0.glob"),
        ([{"claim": "ref", "regex": ".*"}], "0.regex"),
        ([{"claim": "ref", "x" * 65: "a"}], "0." + "x" * 64),
    ],
)
def test_invalid_condition_is_rejected_with_its_position(conditions, place):
    found = faults(conditions, ids=["/kubernetes.io/namespace"])
    assert place in found
    assert found[place]


def test_a_condition_of_each_form_is_taken():
    conditions = [
        {"claim": "repository_id", "equals": "17"},
        {"claim": "environment", "in": ["production", "staging"]},
        {"claim": "ref", "glob": "refs/heads/release-*"},
        {"claim": "/kubernetes.io/namespace", "equals": "infra"},
    ]
    assert faults(conditions, ids=["/kubernetes.io/namespace"]) == {}


@pytest.mark.parametrize(
    "conditions",
    [
        [{"claim": "ref", "equals": "a"}] * 20,
        [{"claim": "ref", "in": ["a"]}],
        [{"claim": "ref", "in": ["a"] * 50}],
        [{"claim": "ref", "equals": "a" * 500}],
        [{"claim": "a" * 200, "equals": "a"}],
        [{"claim": "/kubernetes.io/exp", "equals": "a"}],
    ],
)
def test_as_many_as_there_may_be(conditions):
    assert faults(conditions) == {}


def test_blank_claim_gives_a_single_error():
    assert faults([{"claim": "", "equals": 7}]).keys() == {"0.claim"}


def test_misspelt_operator_gets_a_suggestion():
    assert faults([{"claim": "ref", "equal": "a"}])["0.equal"] == (
        "Unknown field; did you mean 'equals'?"
    )


def test_a_claim_is_found_by_its_name_however_it_is_written():
    assert path_of("repository_id") == path_of("/repository_id")
    assert value_at(KUBERNETES, "/kubernetes.io/namespace") == "infra"
    assert value_at(KUBERNETES, "/kubernetes.io/pod") is None


def test_claim_is_pinned_to_the_intersection_of_its_conditions():
    conditions = [
        {"claim": "ref", "in": ["a", "b"]},
        {"claim": "/ref", "in": ["b", "c"]},
        {"claim": "environment", "glob": "*"},
    ]
    assert pinned(conditions) == {("ref",): {"b"}}
