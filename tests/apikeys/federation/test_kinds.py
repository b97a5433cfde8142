"""Rules per platform: claims that a policy must pin, claims never accepted, and presets."""

import pytest

from apikeys.federation.conditions import are_met, check, faults
from apikeys.federation.kinds import (
    described,
    issuer_faults,
    policy_faults,
    policy_warnings,
    refusals,
    writes,
)
from apikeys.federation.platforms import PLATFORMS, Kind
from apikeys.federation.presets import preset, preset_origins
from apikeys.scopes import Scope

GITHUB = {
    "repository": "acme/infra",
    "repository_id": "651234",
    "repository_owner": "acme",
    "repository_owner_id": "9919",
    "ref": "refs/heads/main",
    "ref_type": "branch",
    "ref_protected": "true",
    "environment": "production",
    "event_name": "push",
    "job_workflow_ref": "acme/infra/.github/workflows/deploy.yml@refs/heads/main",
    "sha": "9f31820",
    "run_id": "77",
    "actor": "ada",
}
GITLAB = {
    "project_id": "41",
    "project_path": "acme/infra",
    "namespace_id": "7",
    "job_project_id": "41",
    "ref": "main",
    "ref_type": "branch",
    "ref_protected": "true",
    "environment": "production",
    "environment_protected": "true",
    "pipeline_source": "push",
    "pipeline_id": "1001",
    "sha": "9f31820",
}
KUBERNETES = {
    "sub": "system:serviceaccount:infra:deployer",
    "kubernetes.io": {
        "namespace": "infra",
        "serviceaccount": {"name": "deployer", "uid": "b1c0"},
        "pod": {"name": "deployer-x2", "uid": "d00d"},
    },
}
BUILDKITE = {
    "organization_id": "0184-a",
    "pipeline_id": "0184-b",
    "pipeline_slug": "infra",
    "build_branch": "main",
    "build_commit": "9f31820",
    "job_id": "0184-c",
}
CIRCLECI = {
    "oidc.circleci.com/project-id": "11c3",
    "oidc.circleci.com/context-ids": ["aa", "bb"],
    "oidc.circleci.com/vcs-ref": "refs/heads/main",
    "oidc.circleci.com/vcs-origin": "github.com/acme/infra",
    "oidc.circleci.com/job-id": "99",
}
CLAIMS = {
    "GITHUB": GITHUB,
    "GITLAB": GITLAB,
    "KUBERNETES": KUBERNETES,
    "BUILDKITE": BUILDKITE,
    "CIRCLECI": CIRCLECI,
    "CUSTOM": {"sub": "build-7"},
}
IDS = {
    "GITHUB": {"repository_id": "651234", "repository_owner_id": "9919"},
    "GITLAB": {"project_id": "41", "namespace_id": "7"},
    "KUBERNETES": {
        "/kubernetes.io/namespace": "infra",
        "/kubernetes.io/serviceaccount/name": "deployer",
        "/kubernetes.io/serviceaccount/uid": "b1c0",
    },
    "BUILDKITE": {"organization_id": "0184-a", "pipeline_id": "0184-b"},
    "CIRCLECI": {"oidc.circleci.com/project-id": "11c3"},
    "CUSTOM": {},
}


def equals(**claims):
    return [{"claim": claim, "equals": value} for claim, value in claims.items()]


def test_every_kind_has_its_facts():
    assert set(PLATFORMS) == set(Kind.values) == set(CLAIMS)


@pytest.mark.parametrize(
    ("kind", "claim"), [(kind, claim) for kind, ids in IDS.items() for claim in ids]
)
def test_a_policy_without_an_immutable_id_is_refused(kind, claim):
    pinned = preset(kind, IDS[kind])
    assert policy_faults(kind, pinned, writes=False) == []
    without = [condition for condition in pinned if condition["claim"] != claim]
    assert any(claim in fault for fault in policy_faults(kind, without, writes=False))
    loose = [*without, {"claim": claim, "glob": "*"}]
    assert any(claim in fault for fault in policy_faults(kind, loose, writes=False))
    assert f"{len(without)}.glob" in faults(loose, PLATFORMS[kind].ids)


def test_list_of_ids_is_a_pin():
    conditions = [
        {"claim": "repository_id", "in": ["651234", "651235"]},
        {"claim": "/repository_owner_id", "equals": "9919"},
    ]
    assert policy_faults("GITHUB", conditions, writes=False) == []


def test_policy_of_a_custom_issuer_must_pin_a_claim():
    assert policy_faults("CUSTOM", [{"claim": "sub", "glob": "*"}], writes=False)
    assert policy_faults("CUSTOM", equals(sub="build-7"), writes=True) == []


REF = {"ref": "refs/heads/main"}
PROTECTED = {"ref_protected": "true"}


@pytest.mark.parametrize(
    ("kind", "origin", "enough"),
    [
        ("GITHUB", [], False),
        ("GITHUB", equals(environment="production"), True),
        ("GITHUB", [{"claim": "environment", "in": ["production", "staging"]}], True),
        ("GITHUB", [{"claim": "environment", "glob": "*"}], False),
        ("GITHUB", equals(**REF), False),
        ("GITHUB", equals(**PROTECTED), False),
        ("GITHUB", equals(**REF, **PROTECTED), True),
        ("GITHUB", equals(**REF, ref_protected="false"), False),
        ("GITHUB", [*equals(**REF), {"claim": "ref_protected", "in": ["true", "false"]}], False),
        ("GITHUB", [*equals(**REF), {"claim": "ref_protected", "glob": "true"}], False),
        (
            "GITHUB",
            [*equals(**PROTECTED), {"claim": "ref", "glob": "refs/heads/release-*"}],
            True,
        ),
        ("GITHUB", equals(job_workflow_ref="acme/i/.github/workflows/d.yml@refs/heads/main"), True),
        ("GITHUB", [{"claim": "job_workflow_ref", "glob": "*/*/.github/workflows/d.yml@*"}], False),
        ("GITHUB", equals(actor="ada", workflow="deploy"), False),
        ("GITLAB", equals(environment="production"), False),
        ("GITLAB", equals(environment="production", environment_protected="true"), True),
        ("GITLAB", equals(ref="main"), False),
        ("GITLAB", equals(ref="main", ref_protected="true"), True),
        ("BUILDKITE", [], False),
        ("BUILDKITE", equals(build_branch="main"), True),
        ("BUILDKITE", [{"claim": "build_branch", "glob": "*"}], False),
        ("CIRCLECI", [], False),
        ("CIRCLECI", equals(**{"oidc.circleci.com/context-ids": "aa"}), True),
        ("CIRCLECI", equals(**{"oidc.circleci.com/vcs-ref": "refs/heads/main"}), False),
        ("KUBERNETES", [], True),
    ],
)
def test_policy_with_write_scopes_must_pin_the_origin(kind, origin, enough):
    conditions = [*preset(kind, IDS[kind]), *origin]
    assert policy_faults(kind, conditions, writes=False) == []
    assert (policy_faults(kind, conditions, writes=True) == []) is enough


def test_missing_pin_gives_an_actionable_message():
    (fault,) = policy_faults("GITHUB", preset("GITHUB", IDS["GITHUB"]), writes=True)
    assert fault == (
        "A policy with write scopes must not accept every branch and fork: pin environment, "
        "or ref with ref_protected = 'true', or job_workflow_ref."
    )


@pytest.mark.parametrize("scope", Scope.values)
def test_write_scopes_are_recognized(scope):
    assert writes([scope]) is not scope.endswith((":read", ":outputs", ":secrets"))
    assert writes(["state:read", "state:write"])


@pytest.mark.parametrize(
    ("kind", "claims", "when_reading", "when_writing"),
    [
        ("GITHUB", {}, False, False),
        ("GITHUB", {"event_name": "pull_request"}, False, False),
        ("GITHUB", {"event_name": "pull_request_target"}, True, True),
        ("GITHUB", {"event_name": None}, True, True),
        ("GITHUB", {"event_name": ["push"]}, True, True),
        ("GITLAB", {}, False, False),
        ("GITLAB", {"job_project_id": None}, False, False),
        ("GITLAB", {"pipeline_source": "parent_pipeline"}, False, False),
        ("GITLAB", {"job_project_id": None, "pipeline_source": "parent_pipeline"}, False, True),
        ("GITLAB", {"pipeline_source": "merge_request_event"}, False, True),
        ("GITLAB", {"pipeline_source": "external_pull_request_event"}, False, True),
        ("GITLAB", {"pipeline_source": None}, False, True),
        # A fork's merge request in the parent project: GitLab before 18.2, and since.
        ("GITLAB", {"job_project_id": "42"}, False, True),
        ("GITLAB", {"project_id": "42"}, False, True),
        ("KUBERNETES", {}, False, False),
        ("BUILDKITE", {}, False, False),
        ("CIRCLECI", {}, False, False),
        ("CUSTOM", {"event_name": "pull_request_target"}, False, False),
    ],
)
def test_events_that_run_untrusted_code_are_rejected(kind, claims, when_reading, when_writing):
    claims = {**CLAIMS[kind], **claims}
    assert bool(refusals(kind, claims, writes=False)) is when_reading
    assert bool(refusals(kind, claims, writes=True)) is when_writing


def test_claims_that_users_choose_are_warned_about():
    conditions = [*preset("GITHUB", IDS["GITHUB"]), *equals(actor="ada", sub="repo:acme/infra")]
    actor, sub = policy_warnings("GITHUB", conditions)
    assert actor.startswith("actor ")
    assert sub.startswith("The format of sub ")
    assert policy_warnings("CUSTOM", equals(sub="build-7")) == []


@pytest.mark.parametrize("kind", Kind.values)
def test_preset_gives_valid_conditions(kind):
    origins = preset_origins(kind) or [None]
    for origin in origins:
        conditions = preset(kind, IDS[kind], **({origin: "production"} if origin else {}))
        if kind == "CUSTOM":
            assert conditions == []
            continue
        assert faults(conditions, PLATFORMS[kind].ids) == {}
        has_origin = bool(origin) or not PLATFORMS[kind].origins
        assert (policy_faults(kind, conditions, writes=True) == []) is has_origin
        speaks_of = {condition["claim"] for condition in conditions}
        assert not speaks_of & PLATFORMS[kind].chosen


@pytest.mark.parametrize(
    ("kind", "origin"),
    [
        ("GITHUB", {"environment": "production"}),
        ("GITHUB", {"branch": "main"}),
        ("GITLAB", {"environment": "production"}),
        ("GITLAB", {"branch": "main"}),
        ("BUILDKITE", {"branch": "main"}),
        ("KUBERNETES", {}),
        ("CIRCLECI", {}),
    ],
)
def test_a_preset_matches_the_claims_that_it_is_for(kind, origin):
    conditions = preset(kind, IDS[kind], **origin)
    assert are_met(check(conditions, CLAIMS[kind]))
    for claim, value in CLAIMS[kind].items():
        if claim in IDS[kind] and isinstance(value, str):
            assert not are_met(check(conditions, {**CLAIMS[kind], claim: f"{value}0"}))


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("GITHUB", {"repository": "acme/infra", "commit": "9f31820", "run": "77"}),
        ("GITLAB", {"repository": "acme/infra", "commit": "9f31820", "run": "1001"}),
        ("KUBERNETES", {"repository": "deployer", "commit": "", "run": "deployer-x2"}),
        ("BUILDKITE", {"repository": "infra", "commit": "9f31820", "run": "0184-c"}),
        ("CIRCLECI", {"repository": "11c3", "commit": "", "run": "99"}),
        ("CUSTOM", {"repository": "", "commit": "", "run": ""}),
    ],
)
def test_run_is_described_by_its_claims(kind, shown):
    assert described(kind, CLAIMS[kind]) == shown
    assert described(kind, {}) == {"repository": "", "commit": "", "run": ""}


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("GITHUB", "https://token.actions.githubusercontent.com"),
        ("GITHUB", "https://token.actions.githubusercontent.com/acme"),
        ("GITHUB", "https://token.actions.acme.ghe.com"),
        ("GITHUB", "https://github.example.com/_services/token"),
        ("GITLAB", "https://gitlab.com"),
        ("GITLAB", "https://gitlab.example.com:8443/git/"),
        ("KUBERNETES", "https://kubernetes.default.svc.cluster.local"),
        ("BUILDKITE", "https://agent.buildkite.com"),
        ("CIRCLECI", "https://oidc.circleci.com/org/11c3"),
        ("CUSTOM", "https://accounts.example.com/"),
    ],
)
def test_the_url_of_an_issuer_is_taken(kind, url):
    assert issuer_faults(kind, url, has_keys=False) == []


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("CUSTOM", "https://token.actions.githubusercontent.com"),
        ("CUSTOM", "https://TOKEN.actions.githubusercontent.com./acme"),
        ("CUSTOM", "https://token.actions.githubusercontent.com:443"),
        ("CUSTOM", "https://x.ghe.com"),
        ("CUSTOM", "https://gitlab.com"),
        ("CUSTOM", "https://agent.buildkite.com"),
        ("CUSTOM", "https://oidc.circleci.com/org/11c3"),
        ("GITHUB", "https://gitlab.com"),
        ("BUILDKITE", "https://agent.buildkite.com/"),
        ("CUSTOM", ""),
        ("CUSTOM", "http://127.0.0.1:8080"),
        ("CUSTOM", "http://accounts.example.com"),
        ("CUSTOM", "ftp://accounts.example.com"),
        ("CUSTOM", "accounts.example.com"),
        ("CUSTOM", "https://"),
        ("CUSTOM", "https://a:b"),
        ("CUSTOM", "https://[::1"),
        ("CUSTOM", "https://a@gitlab.com"),
        ("CUSTOM", "https://accounts.example.com\\@gitlab.com"),
        ("CUSTOM", "https://accounts.example.com?a=b"),
        ("CUSTOM", "https://accounts.example.com#"),
        ("CUSTOM", "https://accounts.example.com/a b"),
        ("CUSTOM", "https://accounts.example.com\n"),
        ("CUSTOM", "https://g\u0131tlab.com"),
    ],
)
def test_the_url_of_an_issuer_is_refused(kind, url):
    assert len(issuer_faults(kind, url, has_keys=False)) == 1


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("KUBERNETES", "kubernetes/serviceaccount"),
        ("KUBERNETES", "http://10.0.0.1:6443"),
        ("CUSTOM", "http://127.0.0.1:8080"),
        ("GITLAB", "https://gitlab.com"),
    ],
)
def test_issuer_with_inline_keys_can_have_any_url(kind, url):
    assert issuer_faults(kind, url, has_keys=True) == []


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("CUSTOM", "https://gitlab.com"),
        ("KUBERNETES", "https://agent.buildkite.com"),
        ("BUILDKITE", "https://buildkite.example.com"),
        ("CUSTOM", ""),
        ("CUSTOM", "a\nb"),
    ],
)
def test_with_keys_of_its_own_it_does_not_speak_for_another_platform(kind, url):
    assert len(issuer_faults(kind, url, has_keys=True)) == 1
