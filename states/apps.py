from django.apps import AppConfig


class StatesConfig(AppConfig):
    """The app for Terraform states: the backends, the history, and the resource index."""

    name = "states"
    verbose_name = "Infrastructure state"

    def ready(self) -> None:
        from states import checks  # noqa: F401, PLC0415 - registers checks; needs loaded apps
