"""Names of keys, tokens and users, with links for people who may view them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.urls import reverse
from django.utils.html import format_html

from apikeys.models import AccessToken, ApiKey, TrustPolicy
from infra_service.lib.admin.permissions import may_view
from infra_service.lib.admin.templatetags.charts import identifier

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping

    from django.contrib.auth.models import AnonymousUser

    from apikeys.models import User

#: The model for each prefix of an id.
_MODELS: Final = {"key-": ApiKey, "tok-": AccessToken, "fed-": TrustPolicy}


def credential_names(user: User | AnonymousUser, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the names of keys, tokens and policies by id, if the person may view them."""
    wanted = {one for one in ids if one}
    names: dict[str, str] = {}
    for beginning, model in _MODELS.items():
        known = {one for one in wanted if one.startswith(beginning)}
        if known and may_view(user, model):
            names.update(model._default_manager.filter(pk__in=known).values_list("pk", "name"))
    return names


def credential_link(credential_id: str, names: Mapping[str, str]) -> str:
    """Return a link to a key, token or policy, with the name or the end of the id as its text."""
    model = _MODELS.get(credential_id[:4], AccessToken)
    url = reverse(f"admin:apikeys_{model._meta.model_name}_change", args=(credential_id,))
    if name := names.get(credential_id):
        return format_html('<a href="{}" title="{}">{}</a>', url, credential_id, name)
    return format_html('<a href="{}">{}</a>', url, identifier(credential_id))


def user_link(user_id: uuid.UUID, name: str) -> str:
    return format_html(
        '<a href="{}">{}</a>', reverse("admin:apikeys_user_change", args=(user_id,)), name
    )
