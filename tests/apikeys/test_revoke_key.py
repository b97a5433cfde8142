"""POST /v1/api-keys/{id}:revoke."""

from apikeys.models import AuditEvent
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith, violations, wire
from tests.conftest import error_reason


def test_it_is_final_and_idempotent(owner: KeyOwner, key_with: KeyWith) -> None:
    other = key_with("state:read")

    first = owner.send("POST", other.path + ":revoke")
    second = owner.send("POST", other.path + ":revoke/", {})

    assert (first.status_code, second.status_code) == (200, 200)
    shown = first.json()["api_key"]
    assert shown["status"] == "API_KEY_STATUS_REVOKED"
    assert shown["revoked_at"] == wire(other.key.revoked_at)
    assert second.json() == first.json()
    (event,) = AuditEvent.objects.filter(action="api_key.revoke")
    assert (event.resource_id, event.token_id) == (other.key_id, owner.key_id)
    assert error_reason(other.get("/v1/whoami")) == "CREDENTIALS_INVALID"


def test_a_key_may_revoke_itself(owner: KeyOwner) -> None:
    assert owner.send("POST", owner.path + ":revoke").status_code == 200
    assert owner.get("/v1/whoami").status_code == 401


def test_narrow_key_can_revoke_a_wide_key(key_with: KeyWith, owner: KeyOwner) -> None:
    assert key_with("apikey:write").send("POST", owner.path + ":revoke").status_code == 200


def test_minted_tokens_are_invalid_immediately(owner: KeyOwner) -> None:
    fields = {"name": "x", "scopes": ["apikey:read", "apikey:write"]}
    minted = KeyClient(owner.send("POST", "/v1/access-tokens", fields).json()["secret"])
    assert minted.get("/v1/whoami").status_code == 200

    owner.send("POST", owner.path + ":revoke")

    assert error_reason(minted.get("/v1/whoami")) == "CREDENTIALS_INVALID"


def test_a_minted_token_may_revoke_its_key(owner: KeyOwner) -> None:
    fields = {"name": "x", "scopes": ["apikey:write"]}
    minted = KeyClient(owner.send("POST", "/v1/access-tokens", fields).json()["secret"])

    assert minted.send("POST", owner.path + ":revoke").status_code == 200
    assert minted.get("/v1/whoami").status_code == 401


def test_it_has_no_options(owner: KeyOwner) -> None:
    response = owner.send("POST", owner.path + ":revoke", {"reason": "x"})

    assert response.status_code == 400
    assert violations(response) == [("reason", "UNKNOWN_FIELD")]


def test_key_of_another_owner_is_not_found(owner: KeyOwner, outsider: KeyOwner) -> None:
    response = owner.send("POST", outsider.path + ":revoke")

    assert (response.status_code, error_reason(response)) == (404, "API_KEY_NOT_FOUND")
    assert outsider.key.revoked_at is None
