"""Revoking a key revokes the keys it made, and these never exceed its permissions."""

import random
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apikeys import actions
from apikeys.actors import Actor
from apikeys.bindings import Binding
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from tests.apikeys.conftest import NOW, KeyClient, KeyOwner, KeyWith, wire
from tests.apikeys.test_expiry_and_revocation import DAY, HOUR, minted
from tests.conftest import error_reason

SCOPES = ("apikey:read", "apikey:write", "state:read", "state:write")
A, B = uuid.UUID(int=1), uuid.UUID(int=2)


def make(client: KeyClient, name: str = "made", **fields: Any) -> KeyOwner:
    scopes = client.get("/v1/whoami").json()["caller"]["scopes"]
    answer = client.send("POST", "/v1/api-keys", {"name": name, "scopes": scopes, **fields})
    assert answer.status_code == 201, answer.content
    made = answer.json()
    return KeyOwner(ApiKey.objects.get(pk=made["api_key"]["id"]), made["secret"])


@pytest.fixture
def root(key_with: KeyWith) -> KeyOwner:
    return key_with(*SCOPES, name="root")


@pytest.fixture
def owner(key_with: KeyWith) -> KeyOwner:
    """Another key of the same owner, which has as much."""
    return key_with(*SCOPES, name="owner")


def revoke(client: KeyClient, path: str) -> int:
    answer = client.send("POST", path + ":revoke")
    assert answer.status_code == 200, answer.content
    revoked: int = answer.json()["descendants_revoked"]
    return revoked


def expire(*key_ids: str) -> None:
    ApiKey.objects.filter(pk__in=key_ids).update(created_at=NOW() - DAY, expires_at=NOW())


def works(client: KeyClient) -> bool:
    return bool(client.get("/v1/whoami").status_code == 200)


def test_key_contains_its_maker(root: KeyOwner) -> None:
    token = minted(root)
    token_id = AccessToken.objects.get(name="minted").pk

    first, second = make(root), make(token)

    assert root.get(root.path).json()["api_key"]["made_by"] is None
    assert root.get(first.path).json()["api_key"]["made_by"] == root.key_id
    assert root.get(second.path).json()["api_key"]["made_by"] == token_id
    assert second.key.maker_id == root.key_id


def test_a_revocation_takes_all_generations_along(root: KeyOwner, owner: KeyOwner) -> None:
    child = make(root)
    by_token = make(minted(child))
    grandchildren = [make(child), make(by_token)]
    token = minted(grandchildren[1])
    stays = make(owner, scopes=["state:read"])

    assert revoke(owner, root.path) == 4
    assert revoke(owner, root.path) == 0

    for client in (root, child, by_token, *grandchildren, token):
        assert error_reason(client.get("/v1/whoami")) == "CREDENTIALS_INVALID"
    assert works(stays)
    events = AuditEvent.objects.filter(action="api_key.revoke")
    assert {e.resource_id: e.details for e in events} == {
        root.key_id: {},
        **{k.key_id: {"ancestor": root.key_id} for k in (child, by_token, *grandchildren)},
    }


def test_revoked_token_revokes_its_descendants(root: KeyOwner) -> None:
    token = minted(root)
    token_id = AccessToken.objects.get(name="minted").pk
    made = make(token)
    grandchild, other = make(made), make(root)

    assert revoke(root, f"/v1/access-tokens/{token_id}") == 2

    assert [works(c) for c in (made, grandchild, other, root)] == [False, False, True, True]


def test_key_can_revoke_its_own_ancestor(root: KeyOwner) -> None:
    child = make(root)

    assert revoke(child, root.path) == 1
    assert not works(child)


def test_earlier_expiry_applies_to_descendants(root: KeyOwner, owner: KeyOwner) -> None:
    child = make(root)
    token = minted(child, ttl=7200)
    grandchild, sooner = make(child), make(child, expires_at=wire(NOW() + HOUR / 2))
    end = NOW() + HOUR
    before = sooner.key.expires_at

    assert owner.send("PATCH", root.path, {"expires_at": wire(end)}).status_code == 200

    assert wire(child.key.expires_at) == wire(grandchild.key.expires_at) == wire(end)
    assert sooner.key.expires_at == before
    assert token.get("/v1/whoami").json()["caller"]["expires_at"] == wire(end)
    event = AuditEvent.objects.get(action="api_key.update", resource_id=grandchild.key_id)
    assert event.details["ancestor"] == root.key_id
    assert set(event.details) == {"expires_at", "ancestor"}
    # It stays revoked when the ancestor's expiry is extended.
    assert owner.send("PATCH", root.path, {"expires_at": None}).status_code == 200
    assert wire(child.key.expires_at) == wire(end)


def test_narrower_grant_applies_to_descendants(root: KeyOwner, owner: KeyOwner) -> None:
    reader = make(root, scopes=["state:read"])
    child = make(root)
    grandchild = make(child, binding={"component_ids": [str(A), str(B)]})
    elsewhere = make(child, binding={"component_ids": [str(B)]})
    of_cluster = make(child, binding={"cluster_id": str(A)})
    writer = make(child, scopes=["state:write"])
    below = make(elsewhere)

    body = {"scopes": ["apikey:read", "state:read"], "binding": {"component_ids": [str(A)]}}
    assert owner.send("PATCH", root.path, body).status_code == 200

    bound = Binding(component_ids=frozenset({A}))
    for key in (child.key, grandchild.key):
        assert (key.scopes, key.binding) == (["apikey:read", "state:read"], bound)
    assert (reader.key.scopes, reader.key.binding) == (["state:read"], bound)
    # Nothing is left of these.
    for client in (elsewhere, of_cluster, writer, below):
        assert not works(client)
    assert works(owner)


def test_a_key_gets_no_more_than_its_maker_has(key_with: KeyWith) -> None:
    wide = key_with(*SCOPES, "state:admin")
    root = key_with(*SCOPES, lifetime=DAY)
    child = make(root, scopes=["state:read"])

    for body in (
        {"scopes": ["state:admin"]},
        {"expires_at": None},
        {"expires_at": wire(NOW() + 2 * DAY)},
    ):
        answer = wide.send("PATCH", child.path, body)
        assert (answer.status_code, error_reason(answer)) == (403, "GRANT_EXCEEDED")
        assert answer.json()["error"]["message"].startswith("The parent of this key")
    assert wide.send("PATCH", child.path, {"scopes": ["state:write"]}).status_code == 200
    assert child.key.scopes == ["state:write"]


def test_key_cannot_outlive_the_token_that_made_it(root: KeyOwner) -> None:
    made = make(minted(root, ttl=7200), expires_at=wire(NOW() + HOUR))
    end = AccessToken.objects.get(name="minted").expires_at

    later = root.send("PATCH", made.path, {"expires_at": None})
    assert (later.status_code, error_reason(later)) == (403, "GRANT_EXCEEDED")
    assert root.send("PATCH", made.path, {"expires_at": wire(end)}).status_code == 200
    # The row of an expired token may be deleted.
    made = make(minted(root, name="gone"), expires_at=wire(NOW() + HOUR / 2))
    AccessToken.objects.filter(name="gone").delete()
    later = root.send("PATCH", made.path, {"expires_at": wire(NOW() + HOUR)})
    assert (later.status_code, error_reason(later)) == (403, "GRANT_EXCEEDED")


@pytest.mark.parametrize("by_token", [False, True], ids=["by the key", "by a token"])
def test_expired_key_cannot_be_renewed_after_its_maker_is_revoked(
    root: KeyOwner, owner: KeyOwner, *, by_token: bool
) -> None:
    """Revoking the parent leaves an expired key unchanged, and it cannot be renewed."""
    made = make(minted(root) if by_token else root)
    grandchild = make(made)
    expire(made.key_id, grandchild.key_id)
    token_id = AccessToken.objects.get().pk if by_token else ""
    assert revoke(owner, f"/v1/access-tokens/{token_id}" if by_token else root.path) == 0

    for key in (made, grandchild):
        soon = {"expires_at": wire(NOW() + HOUR / 2)}
        answer = owner.send("PATCH", key.path, soon)
        assert answer.status_code in (400, 403)
        assert not works(key)
    answer = owner.send("PATCH", made.path, soon)
    assert (answer.status_code, error_reason(answer)) == (400, "API_KEY_REVOKED")
    assert owner.send("POST", made.path + ":revoke").status_code == 200


def test_keys_of_before_have_no_maker_and_go_on(root: KeyOwner, owner: KeyOwner) -> None:
    child = make(root)
    ApiKey.objects.filter(pk=child.key_id).update(maker=None)

    assert revoke(owner, root.path) == 0
    assert works(child)
    assert owner.send("PATCH", child.path, {"name": "x"}).status_code == 200


def something(rng: random.Random) -> dict[str, Any]:
    """Return some scopes, a binding and an end, or not."""
    ids = rng.choice([[A], [B], [A, B]])
    fields = {
        "scopes": ["apikey:write", *rng.sample(SCOPES, rng.randint(1, 4))],
        "binding": rng.choice([None, {"component_ids": [str(i) for i in ids]}]),
        "expires_at": rng.choice([None, wire(NOW() + HOUR * rng.randint(1, 9))]),
    }
    return {name: value for name, value in fields.items() if rng.random() < 0.4}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_key_never_exceeds_its_maker(root: KeyOwner, owner: KeyOwner, seed: int) -> None:
    """Whatever is done, in whatever order."""
    rng = random.Random(seed)
    keys = [root]
    for _ in range(60):
        actor, target, fields = rng.choice(keys), rng.choice(keys), something(rng)
        what = rng.random()
        if what < 0.5 and works(actor):
            held = actor.get("/v1/whoami").json()["caller"]["scopes"]
            body = {"name": "x", "scopes": held, **fields}
            answer = actor.send("POST", "/v1/api-keys", body)
            if answer.status_code == 201:
                key = ApiKey.objects.get(pk=answer.json()["api_key"]["id"])
                keys.append(KeyOwner(key, answer.json()["secret"]))
        elif what < 0.95:
            rng.choice([actor, owner]).send("PATCH", target.path, fields)
        elif target is not root:
            owner.send("POST", target.path + ":revoke")

    for key in ApiKey.objects.filter(revoked_at=None).exclude(maker=None):
        assert key.maker is not None
        assert key.maker.revoked_at is None
        assert key.grant.is_within(key.maker.grant), (key, key.maker)
    assert len(keys) > 5


def test_an_owner_has_no_more_keys_than_a_revocation_can_take(
    root: KeyOwner, operator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [
        ApiKey(name="x", scopes=["state:read"], digest=n.to_bytes(32), created_by=operator,
               maker_id=root.key_id, expires_at=NOW() + DAY if n % 2 else None)
        for n in range(999)
    ]  # fmt: skip
    # Keys of other owners and revoked keys do not count towards the limit.
    outsider = User.objects.create(username="stranger")
    others: list[dict[str, Any]] = [
        {"created_by": outsider}, {"created_by": operator, "revoked_at": NOW()},
    ]  # fmt: skip
    for n, other in enumerate(others, len(keys)):
        keys.append(ApiKey(name="x", scopes=["state:read"], digest=n.to_bytes(32), **other))
    ApiKey.objects.bulk_create(keys)

    answer = root.send("POST", "/v1/api-keys", {"name": "one more", "scopes": ["state:read"]})
    assert (answer.status_code, error_reason(answer)) == (400, "TOO_MANY_API_KEYS")
    assert answer.json()["error"]["status"] == "FAILED_PRECONDITION"
    expire(keys[0].pk)
    make(root, name="one more")
    # Renewing an expired key counts towards the limit too.
    again = root.send("PATCH", f"/v1/api-keys/{keys[0].pk}", {"expires_at": None})
    assert (again.status_code, error_reason(again)) == (400, "TOO_MANY_API_KEYS")
    expire(keys[1].pk)
    again = root.send("PATCH", f"/v1/api-keys/{keys[0].pk}", {"expires_at": None})
    assert again.status_code == 200

    with CaptureQueriesContext(connection) as captured:
        assert revoke(root, root.path) == 999
    assert len(captured) < 60  # SQLite takes fewer rows at a time than PostgreSQL
    assert not ApiKey.objects.active().exclude(created_by=outsider).exists()


def test_operators_revoke_by_the_same_rule(root: KeyOwner, operator: Any) -> None:
    child = make(root)
    assert actions.revoke_api_key(key=root.key, actor=Actor.of_command("x")) == 2
    assert not works(child)
