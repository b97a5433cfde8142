from django.apps import AppConfig


class StatesConfig(AppConfig):
    """Infrastructure state: the HTTP backend and its history."""

    name = "states"
    verbose_name = "Infrastructure state"

    def ready(self) -> None:
        from states import checks  # noqa: F401, PLC0415 - registers itself; needs the loaded apps
