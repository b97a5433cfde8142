from django.apps import AppConfig


class ChangeHistoryConfig(AppConfig):
    """What changed: the resource-level changes between the versions of all states."""

    name = "infra_service.change_history"
    label = "change_history"
    verbose_name = "Changes"

    def ready(self) -> None:
        from infra_service.change_history import recording  # noqa: PLC0415 - needs the loaded apps
        from states.resources.indexing import version_found  # noqa: PLC0415

        version_found.connect(recording.receive)
