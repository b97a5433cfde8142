"""Constraints that keys, tokens, trust policies and webhooks share, as the first migrations add them."""

from django.db.models import CheckConstraint, F, Q
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from apikeys.models import JsonArrayLength


def _at_most(maximum, column):
    length = JsonArrayLength(column)
    limits = Q(GreaterThanOrEqual(length, 1), LessThanOrEqual(length, maximum))
    return Q((f"{column}__isnull", True)) | limits


def grant_constraints(model):
    """Return the constraints of a model that has a name, scopes, bindings and networks."""
    conditions = {
        "name_present": ~Q(name=""),
        "scopes_present": ~Q(scopes=[]),
        "expires_after_creation": Q(expires_at=None) | Q(expires_at__gt=F("created_at")),
        "bound_one_way": Q(bound_cluster_id=None)
        | Q(bound_component_ids__isnull=True, bound_environment_ids__isnull=True),
        "bound_to_so_many": _at_most(1000, "bound_component_ids")
        & _at_most(1000, "bound_environment_ids"),
        "bound_to_applications": _at_most(1000, "bound_application_ids")
        & (Q(bound_application_ids__isnull=True) | Q(bound_component_ids__isnull=False)),
        "networks_so_many": _at_most(50, "allowed_networks"),
    }
    return [
        CheckConstraint(name=f"{model}_{name}", condition=condition)
        for name, condition in conditions.items()
    ]
