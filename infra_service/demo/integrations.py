"""Demo data of other systems: trusted platforms and webhook receivers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from apikeys import actions
from apikeys.federation.platforms import PLATFORMS, Kind
from apikeys.federation.presets import preset
from apikeys.models import Issuer, TrustPolicy, User
from infra_service.demo.users import COMMAND
from infra_service.webhooks import actions as webhook_actions
from infra_service.webhooks.models import BY_OPERATOR, WebhookEndpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_AUDIENCE: Final = "https://infra.example.com"
#: The kind of each issuer, and its URL if the kind has no fixed URL.
_ISSUERS: Final[Mapping[str, Mapping[str, str]]] = {
    "demo GitHub": {"kind": Kind.GITHUB.value},
    "demo GitLab": {"kind": Kind.GITLAB.value, "url": "https://gitlab.example.com"},
}
_READ: Final = ("state:read",)
_WRITE: Final = ("state:read", "state:write")
#: Issuer, name, scopes, repository ids, and the allowed origin in the repository.
_POLICIES: Final[Sequence[tuple[str, str, Sequence[str], Sequence[str], Mapping[str, str]]]] = (
    ("demo GitHub", "acme/network, plan", _READ, ("512034", "9919"), {}),
    ("demo GitHub", "acme/network, apply", _WRITE, ("512034", "9919"), {"branch": "main"}),
    ("demo GitLab", "platform/clusters", _WRITE, ("4711", "88"), {"branch": "main"}),
)  # fmt: skip
#: Name, format, host and events. The host names do not resolve.
_WEBHOOKS: Final = (
    ("demo chat", "slack", "chat.example.com", ("state.lock_held", "workload.health_changed")),
    ("demo change log", "standard", "changes.example.com", ("state.push", "state.restore")),
)
_DISABLED: Final = "demo change log"


def load_trust() -> Counter[str]:
    """Create missing issuers and trust policies, and return the number of new rows per kind."""
    created: Counter[str] = Counter()
    owner = User.objects.get(username="demo-ci")
    with transaction.atomic():
        for name, fields in _ISSUERS.items():
            if not Issuer.objects.filter(name=name).exists():
                wanted = {**fields, "name": name, "audience": _AUDIENCE}
                actions.create_issuer(fields=wanted, actor=COMMAND)
                created["issuers"] += 1
        for issuer_name, name, scopes, ids, origin in _POLICIES:
            if TrustPolicy.objects.filter(owner=owner, name=name).exists():
                continue
            issuer = Issuer.objects.get(name=issuer_name)
            named = dict(zip(PLATFORMS[issuer.kind].ids, ids, strict=True))
            actions.create_trust_policy(
                owner_id=owner.pk,
                issuer_id=issuer.pk,
                name=name,
                conditions=preset(issuer.kind, named, **origin),
                scopes=scopes,
                expires_at=None,
                actor=COMMAND,
            )
            created["trust_policies"] += 1
    return created


def load_webhooks() -> Counter[str]:
    """Create missing webhooks: an enabled webhook with a delivery, and a disabled webhook."""
    created: Counter[str] = Counter()
    owner = User.objects.get(username="demo-grace")
    for name, form, host, types in _WEBHOOKS:
        if WebhookEndpoint.objects.filter(owner=owner, name=name).exists():
            continue
        fields: dict[str, Any] = {
            "name": name, "url": f"https://{host}/hooks/demo", "event_types": list(types),
            "format": form,
        }  # fmt: skip
        with transaction.atomic():
            endpoint, _secret = webhook_actions.create_endpoint(
                owner_id=owner.pk, fields=fields, expires_at=None, actor=COMMAND
            )
            webhook_actions.send_test(endpoint=endpoint, actor=COMMAND)
            if name == _DISABLED:
                webhook_actions.disable_endpoint(
                    endpoint_id=endpoint.pk, reason=BY_OPERATOR, actor=COMMAND
                )
        created["webhooks"] += 1
    return created
