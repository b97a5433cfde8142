"""Issuers and trust policies in the admin."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.admin.federation_forms import WHERE
from apikeys.federation.platforms import PLATFORMS
from apikeys.models import AuditEvent, Issuer, TrustPolicy, User
from tests.apikeys.admin.conftest import shown
from tests.apikeys.federation.conftest import GITHUB
from tests.support.people import person, text_of

ISSUERS = "/admin/apikeys/issuer/"
POLICIES = "/admin/apikeys/trustpolicy/"


@pytest.fixture
def issuer(db: None) -> Issuer:
    fields = {"kind": "GITHUB", "name": "github", "audience": "https://infra.example.com"}
    return actions.create_issuer(fields=fields, actor=Actor(name="test"))


def make_policy(issuer: Issuer, owner: User, name: str, **columns: Any) -> TrustPolicy:
    policy = actions.create_trust_policy(
        owner_id=owner.pk,
        issuer_id=issuer.pk,
        name=name,
        conditions=GITHUB,
        scopes=["state:write"],
        expires_at=None,
        actor=Actor(name="test"),
    )
    TrustPolicy.objects.filter(pk=policy.pk).update(**columns)
    return policy


@pytest.fixture
def administrator(db: None) -> Client:
    return person("administrator")


NO_IDS = {"id_0": "", "id_1": ""}


def of_a_repository(trusted: Issuer, **fields: Any) -> dict[str, Any]:
    return {
        "issuer": trusted.pk,
        "repository": "https://github.com/acme/infra.git",
        "id_0": "651234",
        "id_1": " 9919",
        "environment": "production",
        "owner": "operator",
        "scopes": ["state:read", "state:write"],
        "max_token_seconds": "900",
        **fields,
    }


def test_policy_pins_a_repository_and_its_ids(
    administrator: Client, issuer: Issuer, operator: User
) -> None:
    assert administrator.get(f"{POLICIES}add/").status_code == 200
    answer = administrator.post(f"{POLICIES}add/", of_a_repository(issuer))

    policy = TrustPolicy.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"{POLICIES}{policy.pk}/change/")
    assert (policy.name, policy.owner, policy.max_token_seconds) == ("acme/infra", operator, 900)
    assert policy.conditions == GITHUB
    assert AuditEvent.objects.get(action="trust_policy.create").actor_name == "administrator-person"
    page = administrator.get(answer["Location"]).content.decode()
    assert "environment equals" in page


def test_policy_accepts_written_conditions(
    administrator: Client, issuer: Issuer, operator: User
) -> None:
    written = {"id_0": "", "id_1": "", "environment": "", "written_conditions": json.dumps(GITHUB)}
    administrator.post(f"{POLICIES}add/", of_a_repository(issuer, **written, name="named"))

    policy = TrustPolicy.objects.get()
    assert (policy.name, policy.conditions) == ("named", GITHUB)


@pytest.mark.both
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id_1": ""}, "Enter this id, or enter conditions."),
        ({"environment": ""}, "A policy with write scopes must not accept every branch and fork"),
        ({"written_conditions": "[]"}, "Enter ids or conditions, not both."),
        ({**NO_IDS, "written_conditions": "{}"}, "Must be a list of at least one condition"),
        ({**NO_IDS, "written_conditions": "["}, "Enter valid JSON"),
        ({"owner": "nobody"}, "There is no active user with this name."),
        ({"repository": ""}, "Enter a name or a repository."),
        ({"issuer": "iss-1"}, "That choice is not one of the available"),
        ({"scopes": []}, "This field is required."),
    ],
)
def test_invalid_policy_is_rejected(
    administrator: Client, issuer: Issuer, operator: User, fields: Any, message: str
) -> None:
    answer = administrator.post(f"{POLICIES}add/", of_a_repository(issuer, **fields))

    assert answer.status_code == 200
    assert message in answer.content.decode().replace("&#x27;", "'")
    assert not TrustPolicy.objects.exists()


@pytest.mark.parametrize("kind", [kind for kind in Issuer.Kind.values if kind != "CUSTOM"])
def test_each_platform_has_labelled_ids(administrator: Client, issuer: Issuer, kind: str) -> None:
    fields = {"kind": kind, "name": "other", "audience": "a", "url": PLATFORMS[kind].url}
    if not fields["url"]:
        hosts = PLATFORMS[kind].hosts or ("issuer.example",)
        fields["url"] = f"https://{hosts[0]}/org/7"
    other = actions.create_issuer(fields=fields, actor=Actor(name="test"))
    # Two issuers: the page asks which.
    first = text_of(administrator.get(f"{POLICIES}add/"))
    assert ("Continue" in first, "Repository" in first) == (True, False)
    for requested, message in (
        ("", "This field is required."),
        ("iss-1", "Select a valid choice."),
    ):
        again = text_of(administrator.get(f"{POLICIES}add/?issuer={requested}"))
        assert ("Continue" in again, message in again) == (True, True)

    page = administrator.get(f"{POLICIES}add/?issuer={other.pk}")

    text = text_of(page)
    for claim in PLATFORMS[kind].ids:
        label, where = WHERE[claim]
        assert f"{label}: {where}" in text, claim
    assert ("Branch" in text) == (kind in ("GITHUB", "GITLAB", "BUILDKITE"))
    assert ("only while it is protected" in text) == (kind in ("GITHUB", "GITLAB"))
    assert ("Repository:" in text) == (kind != "KUBERNETES")


def test_policy_of_a_service_account_needs_a_name(administrator: Client, operator: User) -> None:
    fields = {"kind": "KUBERNETES", "name": "k", "audience": "a", "url": "https://issuer.example"}
    issuer = actions.create_issuer(fields=fields, actor=Actor(name="test"))
    given = of_a_repository(issuer, id_2="5f3c", environment="")

    refused = administrator.post(f"{POLICIES}add/", given)
    added = administrator.post(f"{POLICIES}add/", given | {"name": "agent"}, follow=True)

    assert text_of(refused).count("This field is required.") == 1
    assert "The trust policy agent (fed-" in text_of(added)
    assert TrustPolicy.objects.get().name == "agent"


def test_the_address_decides_about_the_platform(
    administrator: Client, issuer: Issuer, operator: User
) -> None:
    fields = {"kind": "BUILDKITE", "name": "b", "audience": "a"}
    other = actions.create_issuer(fields=fields, actor=Actor(name="test"))

    given = of_a_repository(other, scopes=["state:read"])
    administrator.post(f"{POLICIES}add/?issuer={issuer.pk}", given)

    assert TrustPolicy.objects.get().issuer == issuer


def test_platform_without_ids_needs_conditions(administrator: Client, operator: User) -> None:
    fields = {"kind": "CUSTOM", "name": "c", "audience": "a", "url": "https://issuer.example"}
    issuer = actions.create_issuer(fields=fields, actor=Actor(name="test"))

    answer = administrator.post(f"{POLICIES}add/", of_a_repository(issuer))

    assert "Enter conditions: issuers of this kind have no id fields." in text_of(answer)


def test_filter_finds_unused_policies(issuer: Issuer, operator: User) -> None:
    now = timezone.now()
    long_ago = now - dt.timedelta(days=91)
    make_policy(issuer, operator, "new")
    make_policy(issuer, operator, "old", created_at=long_ago)
    make_policy(issuer, operator, "used", created_at=long_ago, last_used_at=now)
    make_policy(issuer, operator, "used long ago", created_at=long_ago, last_used_at=long_ago)
    make_policy(issuer, operator, "disabled", disabled_at=now)
    viewer = person("viewer")

    assert set(shown(viewer.get(f"{POLICIES}?use=never"))) == {"new", "old"}
    assert set(shown(viewer.get(f"{POLICIES}?use=long"))) == {"old", "used long ago"}
    assert shown(viewer.get(f"{POLICIES}?status=disabled")) == ["disabled"]
    assert shown(viewer.get(f"{POLICIES}?q=LONG")) == ["used long ago"]
    assert shown(viewer.get(f"{POLICIES}?q={TrustPolicy.objects.get(name='new').pk}")) == ["new"]
    assert len(shown(viewer.get(f"{POLICIES}?status=working"))) == 4


def test_last_run_and_rejected_assertions_are_shown(issuer: Issuer, operator: User) -> None:
    run = {"jti": "j", "sub": "s", "repository": "acme/infra", "commit": "9f31820", "run": "77"}
    policy = make_policy(issuer, operator, "deploy", last_run=run, last_used_at=timezone.now())
    unmet = [{"claim": "environment", "wanted": {"equals": "production"}, "had": "<staging>"}]
    because = "The claims do not meet the conditions"
    details = {"reason": "conditions_unmet", "because": because, "unmet": unmet}
    AuditEvent.objects.create(action="assertion.refuse", resource_id=policy.pk, details=details)
    path = f"{POLICIES}{policy.pk}/change/"

    page = person("viewer").get(path).content.decode()

    assert "acme/infra 9f31820 77" in page
    assert f"{because}; environment was &#x27;&lt;staging&gt;&#x27;" in page
    # The history needs the permission to view the audit log.
    from django.contrib.auth.models import Permission  # noqa: PLC0415 - used here alone

    blind = person()
    User.objects.get(username="nobody-person").user_permissions.set(
        Permission.objects.filter(codename="view_trustpolicy")
    )
    assert because not in blind.get(path).content.decode()


def test_an_issuer_is_added_and_disabled(administrator: Client, operator: User) -> None:
    fields = {"kind": "GITLAB", "name": "our GitLab", "audience": "https://infra.example.com"}
    assert administrator.get(f"{ISSUERS}add/").status_code == 200

    answer = administrator.post(f"{ISSUERS}add/", fields)

    issuer = Issuer.objects.get()
    assert (answer.status_code, issuer.url) == (302, "https://gitlab.com")
    assert administrator.get(answer["Location"]).status_code == 200
    assert administrator.get(ISSUERS).status_code == 200
    disable = f"{ISSUERS}{issuer.pk}/disable/"
    assert administrator.get(disable).status_code == 200
    administrator.post(disable)
    issuer.refresh_from_db()
    assert issuer.disabled_at is not None
    assert AuditEvent.objects.get(action="issuer.disable").actor_name == "administrator-person"


@pytest.mark.both
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"kind": "CUSTOM", "url": "https://gitlab.com"},
            "The kind of the issuer at this address is GITLAB.",
        ),
        ({"kind": "CUSTOM", "url": "http://a.example"}, "Not an https address"),
        ({"audience": ""}, "This field is required."),
        ({"url": "https://a.example", "inline_keys": "[7]"}, "Not a JSON object."),
        (
            {
                "kind": "CUSTOM",
                "url": "https://a.example",
                "inline_keys": '{"keys": [{"kty": "RSA", "kid": "one", "n": "AQ", "e": "AQAB"}]}',
            },
            "is malformed, or of a type that the service does not support.",
        ),
    ],
)
def test_invalid_issuer_is_rejected(administrator: Client, fields: Any, message: str) -> None:
    given = {"kind": "GITLAB", "name": "n", "audience": "a", **fields}
    answer = administrator.post(f"{ISSUERS}add/", given)

    assert message in answer.content.decode()
    assert not Issuer.objects.exists()


def test_a_policy_is_disabled(administrator: Client, issuer: Issuer, operator: User) -> None:
    policy = make_policy(issuer, operator, "deploy")

    administrator.post(f"{POLICIES}{policy.pk}/disable/")

    policy.refresh_from_db()
    assert policy.disabled_at is not None
    for path in (POLICIES, f"{POLICIES}{policy.pk}/change/"):
        assert "Disabled just now" in text_of(administrator.get(path))


def test_viewer_cannot_change_issuers_and_policies(issuer: Issuer, operator: User) -> None:
    policy = make_policy(issuer, operator, "deploy")
    viewer = person("viewer")

    for path in (ISSUERS, POLICIES):
        assert viewer.get(f"{path}add/").status_code == 403
    for path in (f"{ISSUERS}{issuer.pk}", f"{POLICIES}{policy.pk}"):
        assert viewer.post(f"{path}/disable/").status_code == 403
        assert viewer.get(f"{path}/change/").status_code == 200


def test_issuer_with_a_nul_character_is_rejected(administrator: Client, issuer: Issuer) -> None:
    answer = administrator.get(f"{POLICIES}add/?issuer=%00")

    assert answer.status_code == 200
    assert 'name="issuer"' in answer.content.decode()
