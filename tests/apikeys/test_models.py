"""Each invariant of keys and tokens is a constraint of the database."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from apikeys.identifiers import access_token_id, api_key_id
from apikeys.models import AccessToken, ApiKey, User
from apikeys.querysets import AccessTokenStatus, ApiKeyStatus


def make(model: Any, owner: User, **fields: Any) -> Any:
    values = {"name": "x", "scopes": ["state:read"], "digest": b"0" * 32, "created_by": owner}
    if model is AccessToken:
        values["kind"] = "PERSONAL"
    return model.objects.create(**{**values, **fields})


CLUSTER = uuid.uuid4()
EARLY = {"created_at": timezone.now(), "expires_at": timezone.now() - dt.timedelta(days=1)}
BROKEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "apikey_name_present": (ApiKey, {"name": ""}),
    "apikey_scopes_present": (ApiKey, {"scopes": []}),
    "apikey_digest_is_sha256": (ApiKey, {"digest": b"0" * 31}),
    "apikey_expires_after_creation": (ApiKey, EARLY),
    "apikey_bound_one_way": (
        ApiKey, {"bound_cluster_id": CLUSTER, "bound_component_ids": [str(CLUSTER)]},
    ),
    "apikey_id_form": (ApiKey, {"id": "tok-1"}),
    "apikey_bound_to_so_many": (ApiKey, {"bound_component_ids": [str(CLUSTER)] * 1001}),
    "accesstoken_bound_to_so_many": (AccessToken, {"bound_environment_ids": []}),
    "apikey_bound_to_applications": (ApiKey, {"bound_application_ids": [str(CLUSTER)]}),
    "accesstoken_bound_to_applications": (
        AccessToken, {"bound_application_ids": [], "bound_component_ids": [str(CLUSTER)]},
    ),
    "apikey_networks_so_many": (ApiKey, {"allowed_networks": []}),
    "accesstoken_networks_so_many": (AccessToken, {"allowed_networks": ["10.0.0.0/8"] * 51}),
    "apikey_maker_token_has_its_key": (ApiKey, {"maker_token_id": "tok-1"}),
    "apikey_previous_digest_has_an_end": (ApiKey, {"previous_digest": b"1" * 32}),
    "accesstoken_name_present": (AccessToken, {"name": ""}),
    "accesstoken_scopes_present": (AccessToken, {"scopes": []}),
    "accesstoken_digest_is_sha256": (AccessToken, {"digest": b"0" * 33}),
    "accesstoken_expires_after_creation": (AccessToken, EARLY),
    "accesstoken_bound_one_way": (
        AccessToken, {"bound_cluster_id": CLUSTER, "bound_environment_ids": [str(CLUSTER)]},
    ),
    "accesstoken_id_form": (AccessToken, {"id": "key-1"}),
    "accesstoken_kind_known": (AccessToken, {"kind": "OTHER"}),
    "accesstoken_minted_expires": (AccessToken, {"api_key_id": "key-1"}),
    "accesstoken_exchanged_expires": (AccessToken, {"trust_policy_id": "fed-1"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_database_enforces_the_constraint(operator: User, name: str) -> None:
    model, fields = BROKEN[name]

    with transaction.atomic(), pytest.raises(IntegrityError, match=name):
        make(model, operator, **fields)


def test_every_constraint_has_its_test() -> None:
    names = {c.name for model in (ApiKey, AccessToken) for c in model._meta.constraints}

    assert names == set(BROKEN)


@pytest.mark.both
@pytest.mark.parametrize("model", [ApiKey, AccessToken])
def test_a_digest_is_unique(operator: User, model: Any) -> None:
    make(model, operator)

    with transaction.atomic(), pytest.raises(IntegrityError, match="digest"):
        make(model, operator)


@pytest.mark.parametrize("model", [ApiKey, AccessToken])
def test_it_is_shown_by_name_and_id(operator: User, model: Any) -> None:
    credential = make(model, operator)

    assert str(credential) == f"x ({credential.pk})"


def test_identifiers_sort_by_time_and_have_the_spec_form() -> None:
    keys = [api_key_id() for _ in range(100)]

    assert keys == sorted(keys)
    assert all(key.startswith("key-") and key[4:].isalnum() and key.islower() for key in keys)
    assert access_token_id().startswith("tok-")


@pytest.mark.both
@pytest.mark.parametrize(
    ("model", "statuses"), [(ApiKey, ApiKeyStatus), (AccessToken, AccessTokenStatus)]
)
def test_the_status_is_derived(operator: User, model: Any, statuses: Any) -> None:
    now = timezone.now()
    credential = make(model, operator, created_at=now - dt.timedelta(days=2))

    def status() -> str:
        return str(model.objects.with_status().get(pk=credential.pk).status)

    assert status() == statuses.ACTIVE
    model.objects.update(expires_at=now + dt.timedelta(days=1))
    assert status() == statuses.ACTIVE
    model.objects.update(expires_at=now - dt.timedelta(days=1))
    assert status() == statuses.EXPIRED
    assert model.objects.revoke(credential.pk) == 1
    assert status() == statuses.REVOKED
    assert model.objects.revoke(credential.pk) == 0
