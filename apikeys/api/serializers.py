from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.module_loading import import_string
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from apikeys import actions
from apikeys.authentication import caller_of
from apikeys.bindings import EVERYWHERE, LISTS, Binding
from apikeys.models import MAX_BOUND_IDS, AccessToken, AuditEvent
from apikeys.querysets import AccessTokenStatus, ApiKeyStatus
from apikeys.scopes import Scope
from infra_service.api.fields import (
    IdField,
    SecondsField,
    StrictSerializer,
    TextField,
    TimestampField,
    WordField,
    WordsField,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Mapping, Sequence

#: Two slugs, and the slash between them.
_LONGEST_NAME: Final = 127


class OwnerSerializer(serializers.Serializer[Any]):
    """Who created it."""

    id = serializers.CharField(read_only=True)
    display_name = serializers.CharField(read_only=True)
    email = serializers.CharField(read_only=True)


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
    return _bound(f"{help_text} The answer has their ids.", name, write_only=True)


class BindingSerializer(StrictSerializer):
    """Where it works: in one cluster, or for applications, components, environments."""

    cluster_id = IdField(required=False, allow_null=True)
    component_ids = _bound("States of these components.", IdField())
    environment_ids = _bound("States in these environments.", IdField())
    application_ids = _bound(
        "States of all components of these applications, also of those that come later.", IdField()
    )
    components = _named(
        "Slugs of components beside the ids; of one in an application 'application/component'."
    )
    environments = _named("Slugs of environments beside the ids.")
    applications = _named("Slugs of applications beside the ids.")

    def get_attribute(self, instance: Any) -> Binding | None:
        """Return the binding, or None where it is everywhere."""
        binding: Binding = instance.binding
        return None if binding == EVERYWHERE else binding

    def to_representation(self, instance: Binding) -> Any:
        """Return all ids, null where nothing is bound."""
        return instance.described()

    def to_internal_value(self, data: Any) -> Binding:
        given = super().to_internal_value(data)
        lists = {name: self._ids(name.removesuffix("_ids"), given) for name in LISTS}
        binding = Binding(given.get("cluster_id"), **lists)
        if binding.cluster_id is not None and any(ids is not None for ids in lists.values()):
            detail = ErrorDetail("Bound to a cluster, or to components and environments.", "both")
            raise ValidationError({"cluster_id": [detail]})
        return binding

    def _ids(self, kind: str, given: Mapping[str, Any]) -> frozenset[uuid.UUID] | None:
        """Return the ids of what is given by ids and by names; None where neither is."""
        ids, names = given.get(f"{kind}_ids"), given.get(f"{kind}s")
        if ids is None and names is None:
            return None
        found = frozenset(ids or ()) | frozenset(self._found(kind, f"{kind}s", names or ()))
        if kind == "component" and self._maker.application_ids is not None:
            self._found(kind, "component_ids", [str(one) for one in ids or ()])
        if len(found) > MAX_BOUND_IDS:
            detail = ErrorDetail(f"More than {MAX_BOUND_IDS} together.", "max_length")
            raise ValidationError({f"{kind}s": [detail]})
        return found

    def _found(self, kind: str, field: str, texts: Sequence[str]) -> Collection[uuid.UUID]:
        """Return the ids of what the maker sees; there is no difference in what it does not."""
        if not texts:
            return ()
        find_inside: Callable[..., dict[str, uuid.UUID]] = import_string(settings.BINDING_NAMES)
        found = find_inside(kind, texts, self._maker)
        unknown: Any = {
            place: [ErrorDetail(f"No such {kind}.", f"unknown_{kind}")]
            for place, text in enumerate(texts)
            if text not in found
        }
        if unknown:
            raise ValidationError({field: unknown})
        return found.values()

    @property
    def _maker(self) -> Binding:
        """Where whoever sends this works; commands and the admin do everywhere."""
        request = self.context.get("request")
        return EVERYWHERE if request is None else caller_of(request).binding


class BoundSerializer(StrictSerializer):
    """What has a field ``binding``."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated fields; a binding that is null works everywhere."""
        validated = super().to_internal_value(data)
        if "binding" in validated and validated["binding"] is None:
            validated["binding"] = EVERYWHERE
        return validated


class CredentialSerializer(BoundSerializer):
    """What keys and tokens have in common."""

    id = serializers.CharField(read_only=True)
    name = TextField(max_length=200)
    scopes = WordsField(Scope.choices, code="unknown_scope", allow_empty=False)
    binding = BindingSerializer(
        required=False,
        allow_null=True,
        help_text="Where it works; null is everywhere. Unless said, where the creator works.",
    )
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null is never; nothing ends later than what made it.",
    )
    last_used_at = TimestampField(read_only=True, allow_null=True)
    revoked_at = TimestampField(read_only=True, allow_null=True)
    created_by = OwnerSerializer(read_only=True)
    created_at = TimestampField(read_only=True)


class ApiKeySerializer(CredentialSerializer):
    """An API key. Its secret is shown once, beside it, when it is created or rotated."""

    id = serializers.RegexField(r"^key-[0-9a-z]+$", read_only=True)
    status = serializers.ChoiceField(ApiKeyStatus.choices, read_only=True)
    made_by = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The key or token that made it, with which it ends; null when an operator did.",
    )


class RunField(serializers.JSONField):
    """What a pipeline's platform said of its run."""


class AccessTokenSerializer(CredentialSerializer):
    """An access token. Its secret is shown once, beside it, when it is minted."""

    id = serializers.RegexField(r"^tok-[0-9a-z]+$", read_only=True)
    kind = WordField(
        AccessToken.Kind.choices,
        default=AccessToken.Kind.PERSONAL,
        help_text="PERSONAL unless it is given.",
    )
    status = serializers.ChoiceField(AccessTokenStatus.choices, read_only=True)
    api_key_id = serializers.CharField(read_only=True, allow_null=True)
    trust_policy_id = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The trust policy by which a pipeline got it; null for all others.",
    )
    run = RunField(
        read_only=True,
        allow_null=True,
        help_text="What the pipeline's platform said: jti, sub, repository, commit, run.",
    )
    ttl = SecondsField(
        minimum=dt.timedelta(seconds=1),
        maximum=actions.MAX_MINTED_LIFETIME,
        required=False,
        write_only=True,
        help_text="How long it lives, such as '3600s' or 3600; instead of expires_at.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse two ends."""
        if "ttl" in attrs and attrs.get("expires_at") is not None:
            raise ValidationError({"ttl": [ErrorDetail("Beside expires_at.", "both")]})
        return attrs


class RotationSerializer(StrictSerializer):
    """How a key is rotated."""

    grace_period = SecondsField(
        minimum=dt.timedelta(0),
        maximum=actions.MAX_GRACE_PERIOD,
        required=False,
        allow_null=True,
        help_text="How long the old secret still works, such as '3600s' or 3600; 0 unless said.",
    )


class CallerSerializer(serializers.Serializer[Any]):
    """The token that calls, and what it may do."""

    token_id = serializers.CharField()
    token_kind = serializers.CharField(source="kind.name")
    api_key_id = serializers.CharField(allow_null=True)
    trust_policy_id = serializers.CharField(allow_null=True)
    scopes = serializers.ListField(child=serializers.CharField())
    binding = BindingSerializer(allow_null=True)
    expires_at = TimestampField(allow_null=True)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return the fields, the scopes in their order."""
        shown = super().to_representation(instance)
        return {**shown, "scopes": sorted(shown["scopes"])}


class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    """One thing that somebody did."""

    class Meta:
        model = AuditEvent
        fields = [
            "id",
            "occurred_at",
            "action",
            "actor_id",
            "actor_name",
            "token_id",
            "resource_id",
            "address",
            "request_id",
            "client_request_id",
            "details",
        ]
        read_only_fields = fields
