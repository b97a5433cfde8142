"""POST /v1/access-tokens/{id}:revoke."""

from apikeys.models import AuditEvent
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith
from tests.conftest import ClientWith, error_reason

PATH = "/v1/access-tokens"


def test_it_is_final_and_idempotent(owner: KeyOwner) -> None:
    minted = owner.send("POST", PATH, {"name": "x", "scopes": ["state:read"]}).json()
    path = f"{PATH}/{minted['access_token']['id']}:revoke"

    first, second = owner.send("POST", path), owner.send("POST", path + "/")

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json()["access_token"]["status"] == "ACCESS_TOKEN_STATUS_REVOKED"
    assert first.json() == second.json()
    assert AuditEvent.objects.filter(action="access_token.revoke").count() == 1
    response = KeyClient(minted["secret"]).get("/v1/whoami")
    assert error_reason(response) == "CREDENTIALS_INVALID"
    assert owner.get("/v1/whoami").status_code == 200


def test_operator_issued_token_can_be_revoked(owner: KeyOwner, client_with: ClientWith) -> None:
    issued = client_with("state:read")

    assert owner.send("POST", f"{PATH}/{issued.token.pk}:revoke").status_code == 200
    assert issued.get("/v1/whoami").status_code == 401


def test_token_of_another_owner_is_not_found(client_with: ClientWith, outsider: KeyOwner) -> None:
    response = outsider.send("POST", f"{PATH}/{client_with('state:read').token.pk}:revoke")

    assert (response.status_code, error_reason(response)) == (404, "ACCESS_TOKEN_NOT_FOUND")


def test_it_needs_its_scope(key_with: KeyWith) -> None:
    response = key_with("apikey:read").send("POST", f"{PATH}/tok-1:revoke")

    assert (response.status_code, error_reason(response)) == (403, "SCOPE_INSUFFICIENT")
