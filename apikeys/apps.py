from django.apps import AppConfig


class ApiKeysConfig(AppConfig):
    """Users, API keys, access tokens and the audit log."""

    name = "apikeys"
    verbose_name = "Access"

    def ready(self) -> None:
        """Record logins, logouts and new superusers in the audit log."""
        from apikeys import logins  # noqa: F401, PLC0415 - receivers
