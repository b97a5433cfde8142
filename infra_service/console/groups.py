"""The default groups of the admin. Each group includes the permissions of the previous group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import Group, Permission
from django.db import transaction

from apikeys import audit
from apikeys.admin_permissions import models_on_pages

if TYPE_CHECKING:
    from apikeys.actors import Actor

OPERATOR: Final = (
    "apikeys.revoke_apikey",
    "apikeys.revoke_accesstoken",
    "states.force_unlock_state",
    "states.freeze_state",
    "states.restore_state",
    # This permission allows users to disable and enable webhooks, and to redeliver events.
    "webhooks.change_webhookendpoint",
)
ADMINISTRATOR: Final = (
    # A document contains all secrets of its state. A user who can issue tokens can also read it.
    "states.download_state",
    "states.delete_state",
    *(
        f"states.{verb}_{name}"
        for name in ("application", "component", "environment")
        for verb in ("add", "change", "delete")
    ),
    *(f"workloads.{verb}_cluster" for verb in ("add", "change", "delete")),
    "apikeys.add_apikey",
    "apikeys.add_accesstoken",
    *(f"apikeys.{verb}_{name}" for name in ("issuer", "trustpolicy") for verb in ("add", "change")),
    # This permission allows users to create and change webhooks, which receive events.
    "webhooks.add_webhookendpoint",
    "apikeys.add_user",
    "apikeys.change_user",
)


def wanted() -> dict[str, frozenset[str]]:
    """Return the permissions (``app.codename``) of each group."""
    options = [model._meta for model in models_on_pages()]
    viewer = frozenset(f"{one.app_label}.view_{one.model_name}" for one in options)
    operator = viewer | frozenset(OPERATOR)
    return {
        "viewer": viewer,
        "operator": operator,
        "administrator": operator | frozenset(ADMINISTRATOR),
    }


@transaction.atomic
def set_up(actor: Actor) -> dict[str, bool]:
    """Set the permissions of each group, and return whether each group changed.

    Raises:
        LookupError: a permission is missing because the database is not migrated.
    """
    there = {
        f"{app}.{codename}": pk
        for pk, app, codename in Permission.objects.values_list(
            "pk", "content_type__app_label", "codename"
        )
    }
    changed = {}
    for name, permissions in wanted().items():
        if missing := sorted(permissions - there.keys()):
            raise LookupError(f"the database is not migrated: there is no {missing[0]}")
        group, _created = Group.objects.get_or_create(name=name)
        before = set(group.permissions.values_list("pk", flat=True))
        after = {there[permission] for permission in permissions}
        changed[name] = before != after
        if changed[name]:
            group.permissions.set(after)
            audit.authorize_and_record(
                actor, "group.change", group.pk, name=name, may=sorted(permissions)
            )
    return changed
