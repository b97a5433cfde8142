"""Serializer fields for bindings: ids or slugs in requests, ids in responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.module_loading import import_string
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from apikeys.authentication import caller_of
from apikeys.bindings import EVERYWHERE, LISTS, PLACEHOLDER, Binding
from apikeys.models import MAX_BOUND_IDS
from apikeys.networks import ANYWHERE, MAX_NETWORKS, Network, Networks, parse_network
from infra_service.lib.api.fields import IdField, StrictSerializer, TextField, described

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Mapping, Sequence

#: The maximum length of two slugs with a slash in between.
_LONGEST_NAME: Final = 127


def _bound(help_text: str, child: serializers.Field[Any, Any, Any, Any], **options: Any) -> Any:
    return serializers.ListField(
        child=child,
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=MAX_BOUND_IDS,
        help_text=help_text,
        **options,
    )


def _named(help_text: str) -> Any:
    name = TextField(max_length=_LONGEST_NAME)
    return _bound(f"{help_text} The response contains ids.", name, write_only=True)


@described(
    "The restriction of a key or token to a cluster, or to components, environments and "
    "applications."
)
class BindingSerializer(StrictSerializer):
    cluster_id = IdField(
        required=False,
        allow_null=True,
        help_text="The only accessible cluster. No states are accessible then. Null means no "
        "restriction to a cluster.",
    )
    component_ids = _bound("Components whose states are accessible.", IdField())
    environment_ids = _bound("Environments whose states are accessible.", IdField())
    application_ids = _bound(
        "Applications. The states of all their current and future components are accessible.",
        IdField(),
    )
    components = _named(
        "Slugs of components, in addition to the ids. Write 'application/component' for a "
        "component of an application."
    )
    environments = _named("Slugs of environments, in addition to the ids.")
    applications = _named("Slugs of applications, in addition to the ids.")

    def get_attribute(self, instance: Any) -> Binding | None:
        """Return the binding, or None if unrestricted."""
        binding: Binding = instance.binding
        return None if binding == EVERYWHERE else binding

    def to_representation(self, instance: Binding) -> Any:
        """Return all ids of the binding."""
        return instance.described()

    def to_internal_value(self, data: Any) -> Binding:
        given = super().to_internal_value(data)
        lists = {name: self._ids(name.removesuffix("_ids"), given) for name in LISTS}
        binding = Binding(given.get("cluster_id"), **lists)
        if binding.cluster_id is not None and binding.is_for_states:
            detail = ErrorDetail("Specify a cluster, or other resources, not both.", "both")
            raise ValidationError({"cluster_id": [detail]})
        return binding

    def _ids(self, kind: str, given: Mapping[str, Any]) -> frozenset[uuid.UUID] | None:
        """Return the given ids and the ids of the given names, or None if neither is given."""
        ids, names = given.get(f"{kind}_ids"), given.get(f"{kind}s")
        if ids is None and names is None:
            return None
        if kind == "component" and ids is not None and PLACEHOLDER in ids:
            detail = ErrorDetail("No such component.", "unknown_component")
            raise ValidationError({"component_ids": {ids.index(PLACEHOLDER): [detail]}})
        found = frozenset(ids or ()) | frozenset(self._found(kind, f"{kind}s", names or ()))
        if kind == "component" and self._caller_binding.application_ids is not None:
            self._found(kind, "component_ids", [str(one) for one in ids or ()])
        if len(found) > MAX_BOUND_IDS:
            detail = ErrorDetail(f"More than {MAX_BOUND_IDS} ids and slugs in total.", "max_length")
            raise ValidationError({f"{kind}s": [detail]})
        return found

    def _found(self, kind: str, field: str, texts: Sequence[str]) -> Collection[uuid.UUID]:
        """Return the ids of the entries. Entries that the caller cannot access count as unknown."""
        if not texts:
            return ()
        find_inside: Callable[..., dict[str, uuid.UUID]] = import_string(settings.BINDING_NAMES)
        found = find_inside(kind, texts, self._caller_binding)
        unknown: Any = {
            place: [ErrorDetail(f"No such {kind}.", f"unknown_{kind}")]
            for place, text in enumerate(texts)
            if text not in found
        }
        if unknown:
            raise ValidationError({field: unknown})
        return found.values()

    @property
    def _caller_binding(self) -> Binding:
        """Return the binding of the caller; commands and the admin are unrestricted."""
        request = self.context.get("request")
        return EVERYWHERE if request is None else caller_of(request).binding


class NetworkField(serializers.CharField):
    """A network in CIDR notation."""

    default_error_messages = {
        "invalid_network": (
            "Not a network in CIDR notation, such as '10.0.0.0/8' or '2001:db8::/32'. All bits "
            "after the prefix must be 0."
        ),
    }

    def to_internal_value(self, data: Any) -> Network:  # type: ignore[override]
        try:
            return parse_network(data) if isinstance(data, str) else self.fail("invalid_network")
        except ValueError:
            self.fail("invalid_network")

    def to_representation(self, value: Any) -> str:
        return str(value)


class NetworksField(serializers.ListField):
    """A list of networks, which the service merges and sorts."""

    child = NetworkField(trim_whitespace=False)
    most = MAX_NETWORKS

    def __init__(self) -> None:
        super().__init__(
            allow_empty=False,
            required=False,
            allow_null=True,
            help_text="Networks (CIDR) from which the credential may be used; null means any "
            "address. The default is the creator's networks. Adjacent and overlapping networks "
            "are merged.",
        )

    def to_internal_value(self, data: Any) -> Networks:  # type: ignore[override]
        if isinstance(data, list) and len(data) > self.most:
            raise ValidationError(f"More than {self.most} items.", code="max_length")
        return Networks.of(super().to_internal_value(data))


class BoundSerializer(StrictSerializer):
    """A serializer of resources with the fields ``binding`` and ``allowed_networks``."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated fields, with null replaced by the unrestricted value."""
        validated = super().to_internal_value(data)
        if "allowed_networks" in validated and validated["allowed_networks"] is None:
            validated["allowed_networks"] = ANYWHERE
        if "binding" in validated and validated["binding"] is None:
            validated["binding"] = EVERYWHERE
        return validated
