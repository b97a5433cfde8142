"""Single sign-on of operators: accepted and rejected users, their accounts and permissions."""

from __future__ import annotations

import html
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from apikeys.models import User
from tests.infra_service.sign_on.conftest import Service, Visitor
from tests.support.openid_provider import Claims, Provider


def a_user(*groups: str, **claims: Any) -> Claims:
    """Return the claims of a person unique to the test."""
    name = f"p{secrets.token_hex(6)}"
    return {
        "sub": f"subject of {name}",
        "preferred_username": name,
        "name": f"Person {name}",
        "email": f"{name}@example.com",
        "groups": ["everybody", *groups],
        **claims,
    }


def user_of(service: Service, person: Claims) -> User:
    return service.user(username=person["preferred_username"])


def refusals(service: Service, subject: str) -> list[dict[str, Any]]:
    events = service.events("user.login_refused")
    return [e.details for e in events if e.details.get("subject") == subject]


def test_mapped_groups_give_permissions(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.person = person = a_user("platform-ops")

    answer = visitor.sign_on("?next=/admin/states/state/")

    assert (answer.status_code, urlsplit(answer.url).path) == (200, "/admin/states/state/")
    user = user_of(service, person)
    assert (user.is_staff, user.is_superuser, user.has_usable_password()) == (True, False, False)
    assert (user.display_name, user.email) == (person["name"], person["email"])
    assert service.groups(user) == ["operator"]
    assert visitor.get("/admin/apikeys/user/add/").status_code == 403
    recorded = [e for e in service.events("user.create", "user.change", "user.login")
            if e.resource_id == str(user.pk)]  # fmt: skip
    name = user.username
    assert [(e.action, e.actor_name, e.details) for e in reversed(recorded)] == [
        ("user.create", name, {"name": name, "issuer": provider.url, "subject": person["sub"]}),
        ("user.change", name,
         {"name": name, "changes": ["is_staff", "groups"], "groups": ["operator"]}),
        ("user.login", name, {}),
    ]  # fmt: skip


def test_groups_follow_the_provider(service: Service, provider: Provider, visitor: Visitor) -> None:
    provider.person = person = a_user("platform-ops")
    visitor.sign_on()
    user = user_of(service, person)
    service.send(lambda: User.objects.filter(pk=user.pk).update(is_superuser=True))

    for theirs, ours in ((["cn=admins"], ["administrator"]),
                         (["platform-ops", "cn=admins"], ["administrator", "operator"]),
                         ("platform-ops", ["operator"])):  # fmt: skip
        provider.person = {**person, "groups": theirs}
        with Visitor(service) as other:
            assert other.sign_on().status_code == 200
        assert service.groups(user) == ours
        assert not user_of(service, person).is_superuser

    events = len(service.events("user.change"))
    with Visitor(service) as other:
        assert other.sign_on().status_code == 200
    assert len(service.events("user.change")) == events  # nothing did


OF_TOKENS = ["aud", "exp", "iat", "iss", "nonce"]


@pytest.mark.parametrize("groups", [[], ["lost"], ["b\0", "<a>"]])
def test_user_without_a_mapped_group_is_rejected_and_not_created(
    service: Service, provider: Provider, visitor: Visitor, groups: list[str]
) -> None:
    provider.person = person = {**a_user(), "groups": groups}

    answer = visitor.sign_on()

    assert answer.status_code == 403
    assert "Your groups at the provider have no access." in answer.text
    received = [name.replace("\0", "\N{REPLACEMENT CHARACTER}") for name in sorted(groups)]
    for name in received:
        assert f"<code>{html.escape(name)}</code>" in answer.text
    assert answer.headers["X-Request-ID"] in answer.text
    refused(service, visitor, person, {"reason": "no_group", "received": received})


def test_a_group_that_is_no_text_is_ignored(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.person = person = {**a_user(), "groups": [None, 7, "platform-ops"]}

    assert visitor.sign_on().status_code == 200
    assert service.groups(user_of(service, person)) == ["operator"]


@pytest.mark.parametrize("groups", [{"platform-ops": True}, None, [["platform-ops"]], 1])
def test_user_without_the_groups_claim_is_rejected_and_not_created(
    service: Service, provider: Provider, visitor: Visitor, groups: Any
) -> None:
    provider.person = person = {**a_user(), "groups": groups}
    if groups == 1:
        del person["groups"]

    answer = visitor.sign_on()

    assert answer.status_code == 403
    assert "The provider did not send your groups." in answer.text
    assert "no claim “groups”" in answer.text
    assert "<code>preferred_username</code>" in answer.text
    received = sorted({*OF_TOKENS, *person})
    refused(service, visitor, person, {"reason": "no_groups_claim", "received": received})


def refused(service: Service, visitor: Visitor, person: Any, details: dict[str, Any]) -> None:
    """Check that no user was logged in or registered, and that an event records it."""
    assert not visitor.is_in
    name = person["preferred_username"]
    assert not service.send(lambda: User.objects.filter(username=name).exists())
    expected = {"subject": person["sub"], "claim": "groups", **details}
    assert refusals(service, person["sub"]) == [expected]


def test_user_removed_from_all_groups_loses_permissions(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.person = person = a_user("platform-ops")
    visitor.sign_on()
    assert visitor.is_in

    provider.person = {**person, "groups": []}
    with Visitor(service) as other:
        assert other.sign_on().status_code == 403
        assert not other.is_in

    user = user_of(service, person)
    assert (user.is_staff, service.groups(user)) == (False, [])
    assert not visitor.is_in  # even if they had logged in before
    name = user.username
    assert refusals(service, person["sub"]) == [
        {
            "reason": "no_group",
            "subject": person["sub"],
            "name": name,
            "claim": "groups",
            "received": [],
        }
    ]


def test_same_email_and_name_with_another_subject_is_a_separate_user(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.person = person = a_user("cn=admins", email_verified=True)
    visitor.sign_on()
    provider.person = {**person, "sub": f"other {person['sub']}", "groups": ["platform-ops"]}
    with Visitor(service) as other:
        assert other.sign_on().status_code == 200

    name = person["preferred_username"]
    users = service.send(
        lambda: list(User.objects.filter(username__startswith=name).order_by("pk"))
    )
    assert [service.groups(user) for user in users] == [["administrator"], ["operator"]]
    assert users[0].username == name
    assert users[1].username.startswith(f"{name}-")


def test_sign_on_never_takes_over_a_user_with_a_password(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.person = a_user(
        "platform-ops", preferred_username="Operator", email="operator@example.com"
    )

    assert visitor.sign_on().status_code == 200

    (own,) = service.send(lambda: list(User.objects.filter(is_superuser=True, username="operator")))
    assert own.username == "operator"
    assert own.has_usable_password()
    (other,) = service.send(lambda: list(User.objects.filter(username__startswith="Operator-")))
    assert not other.is_superuser


@pytest.mark.parametrize(
    "email", ["not an address", f"{'a' * 60}@{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 60}.com"]
)
def test_an_unusable_email_address_is_omitted(
    service: Service, provider: Provider, visitor: Visitor, email: str
) -> None:
    provider.person = person = a_user("platform-ops", email=email)

    assert visitor.sign_on().status_code == 200

    user = service.send(lambda: User.objects.get(username=person["preferred_username"]))
    assert user.email == ""


def test_hostile_characters_in_a_name_are_replaced_or_removed(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.person = person = a_user("platform-ops", name="a\ud800\u202e\u200bb")

    assert visitor.sign_on().status_code == 200

    assert user_of(service, person).display_name == "a?b"


def test_a_name_is_valid_after_its_normalization(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    """Otherwise, the admin could not save the user, such as for a deactivation."""
    provider.person = a_user("platform-ops", preferred_username="half-½")

    assert visitor.sign_on().status_code == 200

    user = service.user(username="half-1-2")
    User._meta.get_field("username").clean(user.username, None)


def test_concurrent_sign_ons_create_a_single_user(service: Service, provider: Provider) -> None:
    provider.person = person = a_user("platform-ops")

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: Visitor(service).sign_on().status_code, range(4)))

    assert answers == [200] * 4
    name = person["preferred_username"]
    users = service.send(lambda: list(User.objects.filter(username__startswith=name)))
    assert [user.username for user in users] == [name]


def signed_by_another(claims: Claims) -> str:
    other = ec.generate_private_key(ec.SECP256R1())
    return jwt.encode(claims, other, "ES256", headers={"kid": "one"})


def unsigned(claims: Claims) -> str:
    return jwt.encode(claims, None, "none", headers={"kid": "one"})


@pytest.mark.parametrize(
    "change",
    [
        {"aud": "another client"},
        {"aud": ["infra-service", "another client"]},
        {"azp": "another client"},
        {"iss": "https://another.example"},
        {"nonce": "of another log-in"},
        {"nonce": None},
        {"nonce": "\ud800"},
        {"exp": 1_000_000_000},
        {"sub": ""},
        {"sub": "  "},
        {"sub": "x" * 192},
        {"sub": "a\0b"},
    ],
    ids=ascii,
)
def test_token_of_another_login_is_refused(
    service: Service, provider: Provider, visitor: Visitor, change: Claims
) -> None:
    provider.person = a_user("platform-ops")
    provider.change = lambda claims: {**claims, **change}

    assert_refused(service, visitor)


@pytest.mark.parametrize("sign", [signed_by_another, unsigned, lambda _claims: "no token"])
def test_unsigned_token_is_refused(
    service: Service, provider: Provider, visitor: Visitor, sign: Callable[[Claims], str]
) -> None:
    provider.person = a_user("platform-ops")
    provider.sign = sign

    assert_refused(service, visitor)


def assert_refused(service: Service, visitor: Visitor) -> None:
    answer = visitor.sign_on()

    assert answer.status_code == 403
    assert "The provider did not identify you." in answer.text
    assert not visitor.is_in
    assert service.events("user.login_refused")[0].details == {"reason": "id_token"}


def test_callback_is_valid_once_and_in_the_browser_that_began(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    """An address that was begun in another browser, was used before, or was made up."""
    provider.person = a_user("platform-ops")
    begun = visitor.get("/admin/sign-on/", allow_redirects=False)
    parameters = parse_qs(urlsplit(begun.headers["Location"]).query)
    assert set(parameters) == {
        "client_id", "redirect_uri", "scope", "response_type", "state", "nonce",
        "code_challenge", "code_challenge_method",
    }  # fmt: skip
    assert set(parameters["scope"][0].split()) == {"openid", "profile", "email", "groups"}
    back = visitor.get(begun.headers["Location"], allow_redirects=False).headers["Location"]

    with Visitor(service) as other:
        assert other.get(back).status_code == 403
        assert other.get("/admin/sign-on/callback/?code=x&state=y").status_code == 403
        assert not other.is_in
    assert visitor.get(back).status_code == 200
    assert visitor.is_in
    assert visitor.get(back).status_code == 403


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", ""],
)
def test_redirect_to_another_host_is_ignored(
    provider: Provider, visitor: Visitor, address: str
) -> None:
    provider.person = a_user("platform-ops")

    answer = visitor.get("/admin/sign-on/", params={"next": address})

    assert urlsplit(answer.url).path == "/admin/"
    assert urlsplit(answer.url).netloc == urlsplit(visitor.service.url).netloc


def test_query_parameters_do_not_change_the_authorization_request(
    visitor: Visitor, provider: Provider
) -> None:
    query = "?auth_params=prompt%3Dnone%26nonce%3Dmine&scope=admin&process=connect"

    begun = visitor.get(f"/admin/sign-on/{query}", allow_redirects=False)

    parameters = parse_qs(urlsplit(begun.headers["Location"]).query)
    assert "prompt" not in parameters
    assert parameters["nonce"] != ["mine"]
    assert "admin" not in parameters["scope"][0]


def test_the_session_ends_when_the_user_is_deactivated_and_after_a_day_of_work(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.person = person = a_user("platform-ops")
    visitor.sign_on()
    assert visitor.is_in
    (cookie,) = (c for c in visitor.cookies if c.name == "sessionid")
    assert cookie.expires is not None
    assert 0 < cookie.expires - time.time() <= 12 * 60 * 60

    def deactivate() -> None:
        user = User.objects.get(username=person["preferred_username"])
        user.is_active = False
        user.save()

    service.send(deactivate)
    assert not visitor.is_in
    assert visitor.sign_on().status_code == 403
    assert not visitor.is_in
    assert refusals(service, person["sub"])[0]["reason"] == "inactive"


def test_the_provider_is_away_and_a_superuser_comes_in(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.is_away = True

    answer = visitor.sign_on()

    assert answer.status_code == 503
    assert "The provider is not available." in answer.text
    password = service.environment["DJANGO_SUPERUSER_PASSWORD"]
    assert visitor.log_in("operator", password).status_code == 200
    assert visitor.is_in


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://another.example"},
        {"token_endpoint": "http://idp.example/token"},
        {"jwks_uri": None},
    ],
    ids=str,
)
def test_discovery_of_another_provider_gives_503(
    provider: Provider, visitor: Visitor, discovery: Claims
) -> None:
    provider.discovery = discovery

    assert visitor.sign_on().status_code == 503


def test_only_superusers_without_sign_on_can_use_a_password(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    provider.person = person = a_user("platform-ops")
    visitor.sign_on()
    password = secrets.token_urlsafe(12)
    name = f"staff-{secrets.token_hex(4)}"

    def set_passwords() -> None:
        for user in (
            User.objects.get(username=person["preferred_username"]),
            User(username=name, is_staff=True),
        ):
            user.set_password(password)
            user.is_superuser = user.username != name
            user.save()

    service.send(set_passwords)
    for username in (person["preferred_username"], name):
        with Visitor(service) as other:
            answer = other.log_in(username, password)
            assert "Please enter the correct username and password" in answer.text
            assert not other.is_in
        assert service.events("user.login_refused")[0].details == {
            "reason": "password", "name": username,
        }  # fmt: skip


def test_pages_of_allauth_are_hidden(service: Service, visitor: Visitor) -> None:
    visitor.log_in("operator", service.environment["DJANGO_SUPERUSER_PASSWORD"])

    assert "socialaccount" not in visitor.get("/admin/").text
    for path in (
        "/admin/socialaccount/socialapp/",
        "/admin/mfa/authenticator/", "/admin/account/emailaddress/", "/accounts/login/",
        "/accounts/signup/", "/signup/", "/login/",
    ):  # fmt: skip
        assert visitor.get(path).status_code == 404
