"""manage.py trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from apikeys.bindings import Binding
from apikeys.models import AuditEvent, Issuer, TrustPolicy, User
from states.models import Environment
from tests.apikeys.test_commands import run
from tests.support.issuer import Key

ISSUER = """
[[issuers]]
name = "github"
kind = "GITHUB"
audience = "https://infra.example.com"
"""
POLICY = """
[[trust_policies]]
name = "deploy"
issuer = "github"
owner = "operator"
scopes = ["state:read", "state:write"]
max_token_seconds = 900
conditions = [
  { claim = "repository_id", equals = "651234" },
  { claim = "repository_owner_id", equals = "9919" },
  { claim = "environment", equals = "production" },
]
"""


@pytest.fixture
def trust(tmp_path: Path, operator: User) -> Any:
    """``trust(text)``: the outcome of the command with a file of this text."""

    def apply(text: str, *options: str) -> Any:
        path = tmp_path / "trust.toml"
        path.write_text(text)
        return json.loads(run("trust", "--file", str(path), "--json", *options))

    return apply


def test_a_file_is_applied_once(trust: Any) -> None:
    first, second = trust(ISSUER + POLICY), trust(ISSUER + POLICY)

    issuer, policy = Issuer.objects.get(), TrustPolicy.objects.get()
    assert first == {
        "dry_run": False,
        "issuers": [{"name": "github", "id": issuer.pk, "result": "created"}],
        "trust_policies": [
            {
                "name": "deploy",
                "owner": "operator",
                "id": policy.pk,
                "result": "created",
                "warnings": [],
            }
        ],
    }
    assert issuer.url == "https://token.actions.githubusercontent.com"
    assert (policy.issuer_id, policy.max_token_seconds) == (issuer.pk, 900)
    assert (policy.maker_id, policy.created_by_id) == (None, None)
    assert [one["result"] for one in second["issuers"] + second["trust_policies"]] == [
        "unchanged",
        "unchanged",
    ]
    assert set(AuditEvent.objects.values_list("action", "actor_name")) == {
        ("issuer.create", "command trust"),
        ("trust_policy.create", "command trust"),
    }


def test_removed_networks_no_longer_limit_the_policy(trust: Any) -> None:
    trust(ISSUER + POLICY + 'allowed_networks = ["10.0.0.0/8"]')
    assert TrustPolicy.objects.get().allowed_networks == ["10.0.0.0/8"]

    (policy,) = trust(ISSUER + POLICY)["trust_policies"]

    assert policy["result"] == "changed"
    assert TrustPolicy.objects.get().allowed_networks is None


def test_changed_objects_are_restored_to_the_file(trust: Any) -> None:
    trust(ISSUER + POLICY)
    Issuer.objects.update(jwks_url="https://elsewhere.example/keys")
    binding = Binding(environment_ids=frozenset({Environment.objects.create(slug="prod").pk}))
    TrustPolicy.objects.update(**binding.columns())

    outcome = trust(ISSUER + POLICY.replace("900", "600"))

    assert [one["result"] for one in outcome["issuers"] + outcome["trust_policies"]] == [
        "changed",
        "changed",
    ]
    policy = TrustPolicy.objects.get()
    assert (policy.max_token_seconds, policy.binding) == (600, Binding())
    assert Issuer.objects.get().jwks_url == ""


def test_a_policy_is_bound_by_names(trust: Any) -> None:
    environment = Environment.objects.create(slug="prod")

    trust(ISSUER + POLICY + '[trust_policies.binding]\nenvironments = ["prod"]\n')

    assert TrustPolicy.objects.get().binding == Binding(environment_ids=frozenset({environment.pk}))


def test_dry_run_makes_no_changes(trust: Any) -> None:
    outcome = trust(ISSUER + POLICY, "--dry-run")

    assert outcome["dry_run"] is True
    assert outcome["issuers"] == [{"name": "github", "id": None, "result": "created"}]
    assert not Issuer.objects.exists()
    assert not TrustPolicy.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (ISSUER.replace("infra.", "other."), "issuers 2: 'github' is defined twice"),
        (POLICY.replace("900", "600"), "trust_policies 2: 'deploy' is defined twice"),
    ],
)
def test_a_second_table_for_the_same_object_is_refused(trust: Any, more: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        trust(ISSUER + POLICY + more)
    assert not Issuer.objects.exists()


def test_owners_are_made_where_that_is_wanted(trust: Any) -> None:
    text = ISSUER + POLICY.replace('"operator"', '"pipelines"')
    with pytest.raises(CommandError, match="trust_policies 1: there is no active user 'pipelines'"):
        trust(text)
    assert not Issuer.objects.exists()

    trust(text, "--create-users")

    owner = TrustPolicy.objects.get().owner
    assert (owner.username, owner.has_usable_password()) == ("pipelines", False)
    event = AuditEvent.objects.get(action="user.create", resource_id=owner.pk)
    assert (event.actor_name, event.details) == ("command trust", {"name": "pipelines"})


def test_issuer_of_a_cluster_is_created_from_files(trust: Any, tmp_path: Path) -> None:
    keys = {"keys": [Key("a").public]}
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    trust(
        '[[issuers]]\nname = "cluster"\nkind = "KUBERNETES"\naudience = "a"\n'
        'url = "https://kubernetes.default.svc"\ninline_keys_file = "keys.json"\n'
    )

    assert Issuer.objects.get().inline_keys == keys


def test_disabled_issuer_is_replaced_by_a_new_issuer(trust: Any) -> None:
    (old,) = trust(ISSUER)["issuers"]
    Issuer.objects.update(disabled_at=Issuer.objects.get().created_at)

    (new,) = trust(ISSUER)["issuers"]

    assert (new["result"], new["id"] != old["id"]) == ("created", True)


def test_text_output_is_readable(tmp_path: Path, operator: User) -> None:
    path = tmp_path / "trust.toml"
    warned = POLICY.replace("]\n\n", "]\n").replace(
        "conditions = [", 'conditions = [\n  { claim = "actor", equals = "ada" },'
    )
    path.write_text(ISSUER + warned)

    dry = run("trust", "--file", str(path), "--dry-run").splitlines()
    lines = run("trust", "--file", str(path)).splitlines()

    assert dry[0] == "issuer github (new) created"
    assert lines[0] == f"issuer github {Issuer.objects.get().pk} created"
    assert lines[1] == f"policy operator deploy {TrustPolicy.objects.get().pk} created"
    assert lines[2].startswith("  warning: actor ")


@pytest.mark.both
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no"),
        ("[[issuers]", "at line 1"),
        ("[[policies]]\n", "unknown key policies"),
        ('issuers = "x"', "issuers must be"),
        ('[[issuers]]\nname = "x"\n', "issuers 1: kind: "),
        (ISSUER + 'colour = "red"\n', "issuers 1: colour: Unknown field"),
        (ISSUER + 'ca_file = "gone.pem"\n', "issuers 1: .*gone.pem"),
        (ISSUER + "ca_file = 7\n", "issuers 1: "),
        (ISSUER + "inline_keys = {keys = [], date = 2026-01-01}\n", "issuers 1: .*not JSON"),
        (ISSUER + POLICY.replace('"operator"', r'"a\u0000"'), "owner contains NUL"),
        (ISSUER + POLICY.replace('"github"', r'"a\u0000"'), "issuer contains NUL"),
        (ISSUER.replace("GITHUB", "CUSTOM"), "issuers 1: url: "),
        (POLICY, "the issuer 'github' is not in the file"),
        (ISSUER + POLICY.replace('owner = "operator"\n', ""), "owner is missing"),
        (ISSUER + POLICY.replace("environment", "ref"), "trust_policies 1: A policy with write"),
        (ISSUER + POLICY.replace("state:write", "state:wite"), "did you mean 'state:write'"),
        (ISSUER + POLICY.replace('equals = "production"', "regex = '.*'"), "conditions"),
    ],
)
def test_invalid_file_makes_no_changes(trust: Any, text: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        trust(text)
    assert not Issuer.objects.exists()


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"gone\.toml"):
        run("trust", "--file", str(tmp_path / "gone.toml"))


def test_ambiguous_name_is_rejected(trust: Any) -> None:
    trust(ISSUER)
    issuer = Issuer.objects.get()
    Issuer.objects.create(kind="GITHUB", name="github", url="https://evil.example", audience="a")

    with pytest.raises(CommandError, match=f"several objects have this name: {issuer.pk}"):
        trust(ISSUER + POLICY)
    by_id = POLICY.replace('"github"', f'"{issuer.pk}"')
    assert trust(by_id)["trust_policies"][0]["result"] == "created"


OTHER = POLICY.replace('"deploy"', '"other"')


def test_prune_disables_other_policies_of_the_same_owners(trust: Any) -> None:
    User.objects.create(username="somebody else")
    trust(ISSUER + POLICY + OTHER + OTHER.replace('"operator"', '"somebody else"'))
    of_a_key = TrustPolicy.objects.get(name="other", owner__username="operator")
    of_a_key.pk, of_a_key.name, of_a_key.maker_token_id = "fed-ofatoken", "made", "tok-1"
    of_a_key.save(force_insert=True)
    before = AuditEvent.objects.count()

    tried = trust(ISSUER + POLICY, "--prune", "--dry-run")["trust_policies"]

    assert [(one["name"], one["result"]) for one in tried] == [
        ("deploy", "unchanged"), ("other", "disabled"),
    ]  # fmt: skip
    assert AuditEvent.objects.count() == before
    assert not TrustPolicy.objects.exclude(disabled_at=None).exists()

    assert trust(ISSUER + POLICY, "--prune")["trust_policies"] == tried

    (disabled,) = TrustPolicy.objects.exclude(disabled_at=None)
    assert (disabled.name, disabled.owner.username) == ("other", "operator")
    event = AuditEvent.objects.get(action="trust_policy.disable")
    assert (event.resource_id, event.actor_name) == (disabled.pk, "command trust")
    # Again there is nothing to disable.
    assert len(trust(ISSUER + POLICY, "--prune")["trust_policies"]) == 1


def test_the_list(trust: Any) -> None:
    trust(ISSUER + POLICY + OTHER)
    run("trust", "--disable", TrustPolicy.objects.get(name="other").pk)

    listed = json.loads(run("trust", "--list", "--json"))
    everything = json.loads(run("trust", "--list", "--all", "--json"))
    shown = run("trust", "--list", "--all").splitlines()

    policy = TrustPolicy.objects.get(name="deploy")
    assert [one["name"] for one in listed["issuers"]] == ["github"]
    assert listed["trust_policies"] == [
        {
            "id": policy.pk, "owner": "operator", "name": "deploy", "issuer_id": policy.issuer_id,
            "scopes": ["state:read", "state:write"], "made_by": None, "unusable_reason": None,
            "last_used_at": None, "expires_at": None,
        }
    ]  # fmt: skip
    assert [one["unusable_reason"] for one in everything["trust_policies"]] == [
        None, "policy_disabled",
    ]  # fmt: skip
    assert shown[0].startswith(f"issuer github {policy.issuer_id} GITHUB https://")
    assert [" ".join(line.split()[1:]) for line in shown[2:]] == [
        "operator deploy github active never never state:read,state:write",
        "operator other github policy disabled never never state:read,state:write",
    ]


def test_disabling_is_atomic_and_idempotent(trust: Any) -> None:
    trust(ISSUER + POLICY)
    policy, issuer = TrustPolicy.objects.get(), Issuer.objects.get()

    with pytest.raises(CommandError, match="no trust policy or issuer 'fed-0'; no object was"):
        run("trust", "--disable", policy.pk, "fed-0")
    assert run("trust", "--disable", policy.pk, "--dry-run") == f"{policy.pk} disabled\n"
    assert TrustPolicy.objects.get().disabled_at is None

    assert run("trust", "--disable", policy.pk, issuer.pk) == (
        f"{policy.pk} disabled\n{issuer.pk} disabled\n"
    )
    again = json.loads(run("trust", "--disable", policy.pk, issuer.pk, "--json"))

    assert again["disabled"] == [
        {"id": policy.pk, "changed": False}, {"id": issuer.pk, "changed": False},
    ]  # fmt: skip
    actions = AuditEvent.objects.filter(action__endswith=".disable")
    assert sorted(actions.values_list("action", flat=True)) == [
        "issuer.disable", "trust_policy.disable",
    ]  # fmt: skip
    # Disabled policies do not count: the file creates a new policy with another ID.
    assert trust(ISSUER + POLICY)["trust_policies"][0]["result"] == "created"


@pytest.mark.parametrize("options", [("--list", "--prune"), ("--disable", "x", "--prune"), ()])
def test_contradicting_options_are_rejected(options: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        run("trust", *options)
