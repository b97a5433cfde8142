from django.apps import AppConfig


class AdminLibraryConfig(AppConfig):
    """The app with the templates, template tags and static files of every admin page."""

    name = "infra_service.lib.admin"
    label = "admin_library"
