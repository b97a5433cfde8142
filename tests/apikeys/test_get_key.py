"""GET /v1/api-keys/{id}."""

import pytest

from tests.apikeys.conftest import KeyOwner, expire, wire
from tests.conftest import error_reason


def test_key_is_returned_without_its_secret(owner: KeyOwner) -> None:
    response = owner.get(owner.path)

    key = owner.key
    assert response.status_code == 200
    assert "secret" not in response.json()
    assert response.json()["api_key"] == {
        "id": key.pk,
        "name": "test",
        "scopes": ["apikey:read", "apikey:write", "state:read"],
        "status": "API_KEY_STATUS_ACTIVE",
        "binding": None,
        "expires_at": None,
        "last_used_at": wire(key.last_used_at),
        "revoked_at": None,
        "created_by": {
            "id": str(key.created_by_id), "display_name": "The operator", "email": "",
        },
        "created_at": wire(key.created_at),
        "made_by": None,
        "unusable_reason": None,
"allowed_networks": None,
"last_used_address": "127.0.0.1",
        "old_secret_expires_at": None,
    }  # fmt: skip
    assert key.last_used_at is not None


def test_an_expired_key_stays_readable(owner: KeyOwner, key_with: object) -> None:
    expired = key_with("state:read")  # type: ignore[operator]
    expire(expired.key)

    assert owner.get(expired.path + "/").json()["api_key"]["status"] == "API_KEY_STATUS_EXPIRED"


@pytest.mark.parametrize("key_id", ["key-1", "KEY-1", "x", "key-%20", "%00", "key-%00"])
def test_unknown_key_is_not_found(owner: KeyOwner, key_id: str) -> None:
    response = owner.get(f"/v1/api-keys/{key_id}")

    assert response.status_code == 404
    assert error_reason(response) in {"API_KEY_NOT_FOUND", "NOT_FOUND"}


def test_key_of_another_owner_is_not_found(owner: KeyOwner, outsider: KeyOwner) -> None:
    response = owner.get(outsider.path)

    assert (response.status_code, error_reason(response)) == (404, "API_KEY_NOT_FOUND")


def test_put_gets_405(owner: KeyOwner) -> None:
    response = owner.send("PUT", owner.path, {"name": "x"})

    assert response.status_code == 405
    assert response.json()["error"]["status"] == "UNIMPLEMENTED"
