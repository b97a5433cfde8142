"""Querysets of keys, tokens and trust policies."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from django.db import connection, transaction
from django.db.models import (
    BooleanField,
    Case,
    CharField,
    DateTimeField,
    F,
    Func,
    JSONField,
    Model,
    Q,
    QuerySet,
    TextChoices,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Now, Replace
from django.utils import timezone

from apikeys.idle_owners import idle_before, signed_on_last
from apikeys.usability import (
    KEY_EXPIRIES,
    KEY_REVOCATIONS,
    TOKEN_EXPIRIES,
    TOKEN_REVOCATIONS,
    UnusableReason,
    unusable_reason,
)
from infra_service.lib.database.busy_timeout import without_waiting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from apikeys.bindings import Binding
    from apikeys.grants import Caller

#: The minimum interval between writes of ``last_used_at``, which limits the load of writes.
LAST_USED_RESOLUTION: Final = dt.timedelta(minutes=1)
#: The remaining lifetime at which operators see a credential as expiring.
SOON: Final = dt.timedelta(days=30)
#: The age after which a credential that was never used counts as unused.
UNUSED_AFTER: Final = dt.timedelta(days=7)

C = TypeVar("C", bound=Model)


class ApiKeyStatus(TextChoices):
    """The status of a key, which is derived and never stored."""

    ACTIVE = "API_KEY_STATUS_ACTIVE"
    EXPIRED = "API_KEY_STATUS_EXPIRED"
    REVOKED = "API_KEY_STATUS_REVOKED"


class AccessTokenStatus(TextChoices):
    """The status of a token, which is derived and never stored."""

    ACTIVE = "ACCESS_TOKEN_STATUS_ACTIVE"
    EXPIRED = "ACCESS_TOKEN_STATUS_EXPIRED"
    REVOKED = "ACCESS_TOKEN_STATUS_REVOKED"


class IsSubset(Func):
    """A condition that a column's JSON list is a subset of another list. Null is not a subset."""

    output_field = BooleanField()
    template = "%(expressions)s"
    arg_joiner = " <@ "

    def as_sqlite(self, compiler: Any, connection: Any, **_extra: Any) -> tuple[str, Any]:  # noqa: ARG002 - Django's signature
        """Return the SQL for SQLite, which lacks the operator."""
        column, others = self.get_source_expressions()
        column_sql, column_params = compiler.compile(column)
        others_sql, others_params = compiler.compile(others)
        sql = (
            f"({column_sql} IS NOT NULL AND NOT EXISTS ("  # noqa: S608 - compiled expressions
            f"SELECT 1 FROM json_each({column_sql}) AS own "
            f"WHERE own.value NOT IN (SELECT value FROM json_each({others_sql}))))"
        )
        return sql, (*column_params, *column_params, *others_params)


class GrantHolderQuerySet(QuerySet[C]):
    """Shared rules of API keys, access tokens and trust policies."""

    def inside(self, binding: Binding) -> Self:
        """Return the rows with a binding within this binding."""
        inside = self
        if binding.cluster_id is not None:
            inside = inside.filter(bound_cluster_id=binding.cluster_id)
        for name, ids in binding.lists.items():
            if ids is not None:
                others = Value(sorted(map(str, ids)), JSONField())
                inside = inside.filter(IsSubset(F(f"bound_{name}"), others), bound_cluster_id=None)
        return inside

    def as_seen(self, holder: Any) -> Self:
        """Return a queryset of the row, empty if the row has changed since ``holder`` was read."""
        return self.filter(pk=holder.pk, revision=holder.revision)

    def locked(self) -> Self:
        """Lock the rows until the transaction ends, but allow new foreign keys to them."""
        return self.select_for_update(no_key=True)

    def change(self, **values: Any) -> int:
        """Update the rows, increment their revision, and return the number of rows."""
        return self.update(**values, revision=F("revision") + 1)


class CredentialQuerySet(GrantHolderQuerySet[C]):
    """Shared rules of API keys and access tokens."""

    statuses: ClassVar[type[TextChoices]]
    revocations: ClassVar[Mapping[str, UnusableReason]] = KEY_REVOCATIONS
    expiries: ClassVar[Mapping[str, UnusableReason]] = KEY_EXPIRIES

    def with_status(self) -> Self:
        """Annotate ``status`` and ``unusable_reason``. A revocation has precedence over expiry."""
        now = timezone.now()
        revoked, expired = Q(), Q()
        for column in self.revocations:
            revoked |= Q((f"{column}__isnull", False))
        for column in self.expiries:
            expired |= Q((f"{column}__lte", now))
        status = Case(
            When(revoked, then=Value(self.statuses["REVOKED"].value)),
            When(expired, then=Value(self.statuses["EXPIRED"].value)),
            default=Value(self.statuses["ACTIVE"].value),
            output_field=CharField(),
        )
        reason = unusable_reason(
            self.revocations, self.expiries, now=now, idle_before=idle_before(now)
        )
        return self.annotate(status=status, unusable_reason=reason)

    def with_searched(self) -> Self:
        """Annotate ``scopes_text``: the scopes in order, separated by spaces."""
        text: Any = Cast("scopes", TextField())
        for part, plain in (('["', ""), ('"]', ""), ('", "', " ")):
            text = Replace(text, Value(part), Value(plain), output_field=TextField())
        return self.annotate(scopes_text=text)

    def active(self) -> Self:
        """Return unexpired and unrevoked credentials, even if the owner is inactive or idle."""
        now, active = timezone.now(), self
        for column in self.revocations:
            active = active.filter((column, None))
        for column in self.expiries:
            active = active.filter(Q((column, None)) | Q((f"{column}__gt", now)))
        return active

    def usable(self) -> Self:
        """Return the credentials that currently work."""
        return self.active().exclude(self._owner_refused())

    def refused_for_owner(self) -> Self:
        """Return active credentials that are rejected because the owner is inactive or idle."""
        return self.active().filter(self._owner_refused())

    def _owner_refused(self) -> Q:
        refused, before = Q(created_by__is_active=False), idle_before(timezone.now())
        return refused if before is None else refused | signed_on_last(before, "created_by__")

    def expiring(self, within: dt.timedelta = SOON) -> Self:
        """Return working credentials that reach their own expiry within this duration."""
        now = timezone.now()
        # The lower bound repeats ``active``, in the form that the index supports.
        return self.usable().filter(expires_at__gt=now, expires_at__lte=now + within)

    def issued(self) -> Self:
        """Return all credentials except minted and exchanged tokens."""
        return self.all()

    def unused(self) -> Self:
        """Return working credentials that are older than ``UNUSED_AFTER`` and were never used."""
        return self.usable().filter(
            last_used_at=None, created_at__lte=timezone.now() - UNUSED_AFTER
        )

    def expired(self) -> Self:
        """Return unrevoked credentials that are past their own expiry."""
        return self.filter(revoked_at=None, expires_at__lte=timezone.now())

    def revoked(self) -> Self:
        """Return credentials that are themselves revoked, regardless of their origin."""
        return self.filter(revoked_at__isnull=False)

    def visible_to(self, caller: Caller) -> Self:
        """Return the caller's credentials within the caller's binding."""
        return self.filter(created_by=caller.user_id).inside(caller.binding)

    def revoke(self, *credential_ids: str) -> int:
        """Revoke credentials, and return the number of newly revoked credentials."""
        return self.filter(pk__in=credential_ids, revoked_at=None).change(revoked_at=Now())

    def touch(self, credential_id: str, now: dt.datetime, address: str) -> bool:
        """Record the credential's use and the client's address, at most once a minute.

        If another transaction has locked the row (on SQLite, the database), a later request records
        the use.
        """
        due = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_RESOLUTION)
        free = self.filter(due, pk=credential_id).select_for_update(skip_locked=True, no_key=True)
        used = self.filter(pk__in=free.values("pk"))
        use = {"last_used_at": now, "last_used_address": address or None}
        if connection.vendor != "sqlite":
            with transaction.atomic():
                return bool(used.update(**use))
        return without_waiting(lambda: used.update(**use))


class ApiKeyQuerySet(CredentialQuerySet[Any]):
    statuses = ApiKeyStatus

    def with_status(self) -> Self:
        """Also annotate ``old_secret_expires_at``, null without a working old secret."""
        works = When(
            previous_digest_expires_at__gt=timezone.now(), then="previous_digest_expires_at"
        )
        return (
            super()
            .with_status()
            .annotate(old_secret_expires_at=Case(works, output_field=DateTimeField(null=True)))
        )

    def with_searched(self) -> Self:
        """Also annotate ``made_by_id``, the key or token that created a key."""
        by_token = When(~Q(maker_token_id=""), then=F("maker_token_id"))
        made_by = Case(by_token, default=F("maker_id"), output_field=CharField(null=True))
        return super().with_searched().annotate(made_by_id=made_by)


class AccessTokenQuerySet(CredentialQuerySet[Any]):
    """Access tokens. A token expires and is revoked with its key or its trust policy."""

    statuses = AccessTokenStatus
    revocations = TOKEN_REVOCATIONS
    expiries = TOKEN_EXPIRIES

    def issued(self) -> Self:
        """Return the tokens that operators issued."""
        return self.filter(api_key=None, trust_policy=None)

    def ended_with_origin(self) -> Self:
        """Return tokens that are unusable only because of their key or trust policy."""
        now, ended = timezone.now(), Q()
        for column in self.revocations.keys() - KEY_REVOCATIONS:
            ended |= Q((f"{column}__isnull", False))
        for column in self.expiries.keys() - KEY_EXPIRIES:
            ended |= Q((f"{column}__lte", now))
        own = Q(expires_at=None) | Q(expires_at__gt=now)
        return self.filter(ended, own, revoked_at=None)


class IssuerQuerySet(QuerySet[Any]):
    def change(self, **values: Any) -> int:
        """Update the rows, increment their revision, and return the number of rows."""
        return self.update(**values, updated_at=Now(), revision=F("revision") + 1)


class TrustPolicyQuerySet(GrantHolderQuerySet[Any]):
    def change(self, **values: Any) -> int:
        """Update the rows, increment their revision, and return the number of rows."""
        return super().change(**values, updated_at=Now())

    def disable(self, *policy_ids: str) -> int:
        """Disable the enabled rows, and return their number."""
        return self.filter(pk__in=policy_ids, disabled_at=None).change(disabled_at=Now())
