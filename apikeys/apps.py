from django.apps import AppConfig


class ApiKeysConfig(AppConfig):
    """Users, API keys, access tokens and the audit log."""

    name = "apikeys"
    verbose_name = "Access"
