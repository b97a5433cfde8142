from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig


class InfraServiceConfig(AppConfig):
    """The composition root: plumbing that belongs to no single area."""

    name = "infra_service"

    def ready(self) -> None:
        """Register the project's system checks and set up our log lines."""
        # Checks and signals register themselves.
        from infra_service import checks, list_checks, logins, logs  # noqa: F401, PLC0415
        from infra_service.lib.database import checks as database_checks  # noqa: F401, PLC0415
        from infra_service.operations import checks as deployment_checks  # noqa: F401, PLC0415

        logs.configure(settings.LOG_LEVEL)


class AdminConfig(SimpleAdminConfig):
    """Django's admin, with our site instead of its own; ``urls`` and a check load its pages."""

    default_site = "infra_service.admin_site.ServiceAdminSite"

    def ready(self) -> None:
        """Put Django's groups beside our users.

        Django's checks of the pages are left to ours, which loads the pages before.
        """
        apps.get_app_config("auth").verbose_name = apps.get_app_config("apikeys").verbose_name
