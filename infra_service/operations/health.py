"""Views of ``/healthz`` (the process responds) and ``/readyz`` (it can serve requests)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.migrations.executor import MigrationExecutor
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import APIException
from rest_framework.response import Response
from rest_framework.views import APIView

from infra_service import __version__, key_canary
from infra_service.lib.api.openapi_words import answer_example, described_object, error_docs
from infra_service.lib.database.failures import FAILURES
from infra_service.lib.database.probing import connection_of_its_own
from infra_service.operations.squashed_migrations import is_too_old
from states.errors import StorageMisconfigured
from states.keeping.readiness import is_store_refusing

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from rest_framework.request import Request


_seen_migrated = False
_STATUS = {
    "type": "string",
    "const": "ok",
    "description": "Always ok. A failure has a different HTTP status.",
}
_VERSION = {"type": "string", "description": "The release of the service, such as 1.4.0."}
_HEALTH = described_object("Health", "The process responds.", status=_STATUS)
_READINESS = described_object(
    "Readiness", "The process can serve requests.", status=_STATUS, version=_VERSION
)
_OK = {"status": "ok"}
_READY = {**_OK, "version": __version__}


class MigrationsPending(APIException):
    meaning = "The database is older than the code."
    status_code = 503
    default_code = "MIGRATIONS_PENDING"
    default_detail = "The database has pending migrations. Run manage.py migrate."
    wait = 5


class HealthView(APIView):
    """Liveness of the process, without a database query."""

    public = True
    authentication_classes = ()
    http_method_names = ["get", "head"]

    @extend_schema(
        operation_id="check_health",
        responses={200: OpenApiResponse(_HEALTH, "Alive.")},
        examples=[answer_example(_OK)],
    )
    def get(self, _request: Request) -> Response:
        """Report whether the process is alive, without a database query."""
        return Response(_OK)


class ReadyView(HealthView):
    """Readiness of the process: its database, schema, encryption keys and object store."""

    @extend_schema(
        operation_id="check_readiness",
        responses={
            200: OpenApiResponse(_READINESS, "Ready."),
            **error_docs(
                *FAILURES,
                MigrationsPending,
                key_canary.EncryptionKeyWrong,
                StorageMisconfigured,
            ),
        },
        examples=[answer_example(_READY)],
    )
    def get(self, _request: Request) -> Response:
        """Report whether this version can serve requests.

        The database must respond, be migrated and use the configured encryption keys, and the
        object store must accept the configuration.
        """
        with connection_of_its_own() as connection:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            if not _is_migrated(connection):
                raise MigrationsPending
            key_canary.verify_once(connection)
        if is_store_refusing():
            raise StorageMisconfigured
        return Response(_READY)


def _is_migrated(connection: BaseDatabaseWrapper) -> bool:
    """Return whether no migration is pending. Cache True, because migrations only go forward."""
    global _seen_migrated  # noqa: PLW0603 - a state of the process
    if not _seen_migrated:
        executor = MigrationExecutor(connection)
        loader = executor.loader
        _seen_migrated = not (
            is_too_old(loader) or executor.migration_plan(loader.graph.leaf_nodes())
        )
    return _seen_migrated
