from django.apps import AppConfig
from django.conf import settings


class InfraServiceConfig(AppConfig):
    """The composition root: the parts that belong to no other app."""

    name = "infra_service"

    def ready(self) -> None:
        """Register the project's system checks and configure logging."""
        # Checks register themselves on import.
        from infra_service import key_canary, list_checks, logs, view_checks  # noqa: F401, PLC0415
        from infra_service.lib import encryption  # noqa: PLC0415
        from infra_service.lib.database import checks as database_checks  # noqa: F401, PLC0415
        from infra_service.operations import checks as deployment_checks  # noqa: F401, PLC0415

        encryption.guard = key_canary.guard
        logs.configure(settings.LOG_LEVEL)
