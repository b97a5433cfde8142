"""Keys that may be used from some networks only, and the address of their last use."""

import ipaddress
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from apikeys.networks import ANYWHERE, Networks, parse_network
from tests.apikeys.conftest import KeyClient, KeyOwner, violations
from tests.conftest import ClientWith, error_reason
from tests.support.people import person, text_of

KEYS = "/v1/api-keys"
OFFICE = ["10.1.0.0/16", "2001:db8::/32"]


def make(owner: KeyOwner, **fields: Any) -> Any:
    """Create a key of an owner by the API."""
    body = {"name": "limited", "scopes": ["apikey:read", "apikey:write", "state:read"], **fields}
    return owner.send("POST", KEYS, body)


def from_address(secret: str, address: str, path: str = "/v1/whoami") -> Any:
    return KeyClient(secret).get(path, REMOTE_ADDR=address)


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, error_reason(answer)


REFUSED = (403, "ADDRESS_NOT_ALLOWED")


@pytest.mark.both
@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("10.1.2.3", True),
        ("10.2.0.1", False),
        ("::ffff:10.1.2.3", True),
        ("::ffff:10.2.0.1", False),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
        ("192.0.2.1:4711", False),
        ("", False),
    ],
)
def test_a_key_works_from_its_networks(owner: KeyOwner, address: str, is_allowed: bool) -> None:
    secret = make(owner, allowed_networks=OFFICE).json()["secret"]

    answer = from_address(secret, address)

    if is_allowed:
        assert answer.status_code == 200
    else:
        assert refusal(answer) == REFUSED
        assert (
            answer.json()["error"]["message"]
            == "The token cannot be used from this address. Send the request from an allowed "
            "network, or use a token without this restriction."
        )
        assert ApiKey.objects.get(name="limited").last_used_at is None


def test_a_minted_token_is_limited_as_its_key(owner: KeyOwner) -> None:
    secret = make(owner, allowed_networks=OFFICE).json()["secret"]
    wish = json.dumps({"name": "t", "scopes": ["state:read"]})
    minted = KeyClient(secret).post(
        "/v1/access-tokens", wish, "application/json", REMOTE_ADDR="10.1.0.1"
    )
    assert minted.json()["access_token"]["allowed_networks"] == OFFICE
    token = minted.json()["secret"]

    assert from_address(token, "10.1.9.9").status_code == 200
    assert refusal(from_address(token, "192.0.2.1")) == REFUSED
    # The key is limited further, and the token with it at once.
    actions.change_api_key(
        keys=ApiKey.objects.all(),
        key_id=ApiKey.objects.get(name="limited").pk,
        changes={"allowed_networks": Networks.of([parse_network("10.1.0.0/24")])},
        actor=Actor(name="test"),
    )
    assert refusal(from_address(token, "10.1.9.9")) == REFUSED
    assert from_address(token, "10.1.0.9").status_code == 200


@pytest.mark.both
def test_descendants_are_never_wider(owner: KeyOwner) -> None:
    made = make(owner, allowed_networks=OFFICE)
    child = KeyClient(made.json()["secret"])

    def try_to_make(**fields: Any) -> Any:
        body = {"name": "grandchild", "scopes": ["state:read"], **fields}
        return child.generic(
            "POST", KEYS, json.dumps(body), "application/json", REMOTE_ADDR="10.1.0.1"
        )

    for wider in (["0.0.0.0/0"], ["10.0.0.0/8"], ["10.1.0.0/16", "192.0.2.0/24"], None):
        refused = try_to_make(allowed_networks=wider)
        assert refusal(refused) == (403, "GRANT_EXCEEDED")
        limits = refused.json()["error"]["details"][0]["metadata"]
        assert limits == {"allowed_networks": ",".join(OFFICE)}
    assert try_to_make().json()["api_key"]["allowed_networks"] == OFFICE
    narrower = try_to_make(allowed_networks=["10.1.7.0/24"])
    assert narrower.json()["api_key"]["allowed_networks"] == ["10.1.7.0/24"]

    path = f"{KEYS}/{made.json()['api_key']['id']}"
    changed = owner.send("PATCH", path, {"allowed_networks": ["10.1.7.0/25", "10.2.0.0/16"]})

    assert changed.json()["api_key"]["allowed_networks"] == ["10.1.7.0/25", "10.2.0.0/16"]
    left = ApiKey.objects.filter(name="grandchild")
    # A grandchild was limited to both networks and keeps the intersection; its IPv6 part is empty.
    assert {tuple(key.allowed_networks) for key in left} == {("10.1.7.0/25",)}
    assert AuditEvent.objects.filter(action="api_key.update").count() == 3


def test_a_key_that_is_left_with_no_address_is_revoked(owner: KeyOwner) -> None:
    made = make(owner, allowed_networks=["10.1.0.0/16"]).json()
    child = KeyClient(made["secret"])
    body = json.dumps({"name": "grandchild", "scopes": ["state:read"]})
    child.generic("POST", KEYS, body, "application/json", REMOTE_ADDR="10.1.0.1")

    path = f"{KEYS}/{made['api_key']['id']}"
    assert owner.send("PATCH", path, {"allowed_networks": ["10.2.0.0/16"]}).status_code == 200

    assert ApiKey.objects.get(name="grandchild").revoked_at is not None


def test_a_key_that_would_have_too_many_networks_is_revoked(owner: KeyOwner) -> None:
    tens, elevens = ([f"{first}.0.{n}.0/24" for n in range(0, 98, 2)] for first in (10, 11))
    made = make(owner).json()
    wish = {"name": "grandchild", "scopes": ["state:read"]}
    child = KeyClient(made["secret"])
    assert child.send("POST", KEYS, {**wish, "allowed_networks": ["10.0.0.0/8", *elevens]})

    path = f"{KEYS}/{made['api_key']['id']}"
    answer = owner.send("PATCH", path, {"allowed_networks": ["11.0.0.0/8", *tens]})

    assert answer.status_code == 200
    assert ApiKey.objects.get(name="grandchild").revoked_at is not None


def test_a_key_cannot_inherit_too_many_networks(owner: KeyOwner) -> None:
    """A token and its key have few networks, but more networks in common."""
    tens, elevens = ([f"{first}.0.{n}.0/24" for n in range(0, 96, 2)] for first in (10, 11))
    home = "127.0.0.0/8"
    grant = {"scopes": ["apikey:write"], "allowed_networks": ["10.0.0.0/8", home, *elevens]}
    minted = owner.send("POST", "/v1/access-tokens", {"name": "minted", **grant}).json()
    change = {"allowed_networks": ["11.0.0.0/8", home, *tens]}
    assert owner.send("PATCH", owner.path, change).status_code == 200
    token = KeyClient(minted["secret"])
    wish = {"name": "inherited", "scopes": ["apikey:write"]}

    refused = token.send("POST", KEYS, wish)
    assert refusal(refused) == (403, "GRANT_EXCEEDED")
    limits = refused.json()["error"]["details"][0]["metadata"]
    assert limits["allowed_networks"].startswith("10.0.0.0/24,10.0.2.0/24,")
    narrower = token.send("POST", KEYS, {**wish, "allowed_networks": tens})
    assert narrower.status_code == 201


def test_a_repeated_rotation_is_answered_within_the_networks(owner: KeyOwner) -> None:
    made = make(owner, allowed_networks=["127.0.0.0/8"]).json()
    path, key = f"{KEYS}/{made['api_key']['id']}:rotate", KeyClient(made["secret"])
    once = {"HTTP_IDEMPOTENCY_KEY": "5e1c7a52"}
    first = key.generic("POST", path, "", "application/json", **once)

    elsewhere = key.generic("POST", path, "", "application/json", REMOTE_ADDR="192.0.2.1", **once)
    again = key.generic("POST", path, "", "application/json", **once)

    assert refusal(elsewhere) == REFUSED
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["secret"] == first.json()["secret"]
    ApiKey.objects.update(scopes=["apikey:read"])
    assert key.generic("POST", path, "", "application/json", **once).status_code == 401


def test_refusals_elsewhere_do_not_use_up_the_rate_of_a_key(owner: KeyOwner, settings: Any) -> None:
    settings.RATE_LIMIT_TOKEN = 5
    secret = make(owner, allowed_networks=["127.0.0.0/8"]).json()["secret"]

    for number in range(10):
        assert from_address(secret, f"192.0.2.{number}").status_code == 403

    assert from_address(secret, "127.0.0.1").status_code == 200


def test_a_limited_key_cannot_widen_itself(owner: KeyOwner) -> None:
    made = make(owner, allowed_networks=["127.0.0.0/8"]).json()
    path, key = f"{KEYS}/{made['api_key']['id']}", KeyClient(made["secret"])

    for wider in (None, ["0.0.0.0/0"]):
        answer = key.send("PATCH", path, {"allowed_networks": wider})
        assert refusal(answer) == (403, "GRANT_EXCEEDED")
    rotated = key.send("POST", f"{path}:rotate").json()
    assert rotated["api_key"]["allowed_networks"] == ["127.0.0.0/8"]
    assert refusal(from_address(rotated["secret"], "192.0.2.1")) == REFUSED
    assert owner.send("PATCH", path, {"allowed_networks": None}).json()["api_key"] == {
        **rotated["api_key"],
        "allowed_networks": None,
        "last_used_at": ApiKey.objects.get(name="limited").last_used_at
        and owner.get(path).json()["api_key"]["last_used_at"],
        "last_used_address": "127.0.0.1",
    }


@pytest.mark.parametrize(
    ("given_networks", "stored"),
    [
        (["10.0.0.1"], ["10.0.0.1/32"]),
        (["10.0.0.0/9", "10.128.0.0/9"], ["10.0.0.0/8"]),
        (["10.0.0.0/8", "10.1.0.0/16"], ["10.0.0.0/8"]),
        (["::ffff:10.0.0.0/104"], ["10.0.0.0/8"]),
        (["2001:DB8::/32", "10.0.0.0/255.0.0.0"], ["10.0.0.0/8", "2001:db8::/32"]),
        (["0.0.0.0/0"], ["0.0.0.0/0"]),
    ],
)
def test_networks_are_normalized(
    owner: KeyOwner, given_networks: list[str], stored: list[str]
) -> None:
    answer = make(owner, allowed_networks=given_networks)

    assert answer.json()["api_key"]["allowed_networks"] == stored


@pytest.mark.parametrize(
    "wrong",
    [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0",
        "",
        "office",
        "fe80::%eth0/64",
        "10.0.0.0/8 ",
        10,
        None,
    ],
)
def test_invalid_network_is_rejected(owner: KeyOwner, wrong: Any) -> None:
    answer = make(owner, allowed_networks=["192.0.2.0/24", wrong])

    assert answer.status_code == 400
    ((field, reason),) = violations(answer)
    assert field == "allowed_networks.1"
    assert reason in {"INVALID_NETWORK", "NULL", "BLANK"}


@pytest.mark.parametrize("wrong", [[], "10.0.0.0/8", {}, [f"10.0.{n}.0/30" for n in range(51)]])
def test_invalid_list_of_networks_is_rejected(owner: KeyOwner, wrong: Any) -> None:
    assert make(owner, allowed_networks=wrong).status_code == 400


@pytest.mark.both
def test_the_address_of_the_last_use(owner: KeyOwner, client_with: ClientWith) -> None:
    token = client_with("state:read")
    for client in (owner, token):
        client.get("/v1/whoami", REMOTE_ADDR="192.0.2.7")

    assert owner.key.last_used_address == "192.0.2.7"
    assert AccessToken.objects.get(pk=token.token.pk).last_used_address == "192.0.2.7"
    shown = owner.get(owner.path).json()["api_key"]
    assert shown["last_used_address"] == "192.0.2.7"


def test_networks_cost_no_statement(owner: KeyOwner) -> None:
    secret = make(owner, allowed_networks=OFFICE).json()["secret"]
    counts = []
    for each in (secret, secret, owner.secret):
        with CaptureQueriesContext(connection) as queries:
            from_address(each, "10.1.0.1")
        counts.append(len(queries))

    assert counts[1] == counts[2]


def test_the_admin_issues_and_shows_networks(operator: User) -> None:
    client = person("administrator")
    form = {
        "owner": "operator", "name": "limited", "scopes": ["state:read"],
        "allowed_networks": "10.0.0.0/8\n2001:db8::/32",
    }  # fmt: skip

    assert client.post("/admin/apikeys/apikey/add/", form).status_code == 302
    key = ApiKey.objects.get()
    assert key.allowed_networks == ["10.0.0.0/8", "2001:db8::/32"]
    page = text_of(client.get(f"/admin/apikeys/apikey/{key.pk}/change/"))
    assert "10.0.0.0/8, 2001:db8::/32" in page
    wrong = client.post("/admin/apikeys/apikey/add/", {**form, "allowed_networks": "10.0.0.1/8"})
    assert "Not a network" in wrong.content.decode()


def test_commands_take_networks(operator: User, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--user", "operator", "--name", "x", "--scopes", "state:read")
    networks = ("--network", "10.0.0.0/8", "--network", "2001:db8::/32")
    call_command("seed_apikeys", *options, *networks)
    call_command("issue_token", *options, *networks)

    for model in (ApiKey, AccessToken):
        assert model.objects.get().allowed_networks == ["10.0.0.0/8", "2001:db8::/32"]
    capsys.readouterr()
    call_command("seed_apikeys", *options, "--network", "10.0.0.0/9", "--json")
    (outcome,) = json.loads(capsys.readouterr().out)["api_keys"]
    assert outcome["differs"]["allowed_networks"]["asked"] == ["10.0.0.0/9"]


_ADDRESSES = st.integers(0, 255).map(lambda last: f"10.0.0.{last}")
_NETWORKS = st.builds(
    lambda first, prefix: ipaddress.ip_network((f"10.0.0.{first}", prefix), strict=False),
    st.integers(0, 255),
    st.integers(24, 32),
)
_LISTS = st.lists(_NETWORKS, min_size=1, max_size=5).map(Networks.of) | st.just(ANYWHERE)


@given(own=_LISTS, other=_LISTS, address=_ADDRESSES)
def test_networks_are_sets_of_addresses(own: Networks, other: Networks, address: str) -> None:
    common = own.intersection(other)

    assert common.allows(address) == (own.allows(address) and other.allows(address))
    assert common.is_within(own)
    assert common.is_within(other)
    if own.is_within(other) and own.allows(address):
        assert other.allows(address)
    everywhere = [f"10.0.0.{last}" for last in range(256)]
    if own.ranges is not None and other.ranges is not None:
        assert own.is_within(other) == all(map(other.allows, filter(own.allows, everywhere)))
