from django.apps import AppConfig, apps
from django.contrib.admin.apps import SimpleAdminConfig


class ConsoleConfig(AppConfig):
    """The app with the console's templates and static files."""

    name = "infra_service.console"


class AdminConfig(SimpleAdminConfig):
    """Django's admin with the service's own site. ``urls`` and a system check load the pages."""

    default_site = "infra_service.console.site.ServiceAdminSite"

    def ready(self) -> None:
        """List Django's groups in the section of the service's users.

        Unlike Django's method, do not register the checks of admin pages, because the service's own
        check loads the pages first.
        """
        apps.get_app_config("auth").verbose_name = apps.get_app_config("apikeys").verbose_name
