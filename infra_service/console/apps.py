from django.apps import AppConfig, apps
from django.contrib.admin.apps import SimpleAdminConfig


class ConsoleConfig(AppConfig):
    """Finds the console's templates and static files."""

    name = "infra_service.console"


class AdminConfig(SimpleAdminConfig):
    """Django's admin, with our site instead of its own; ``urls`` and a check load its pages."""

    default_site = "infra_service.console.site.ServiceAdminSite"

    def ready(self) -> None:
        """Put Django's groups beside our users.

        Django's checks of the pages are left to ours, which loads the pages before.
        """
        apps.get_app_config("auth").verbose_name = apps.get_app_config("apikeys").verbose_name
