from django.apps import AppConfig


class ChangeHistoryConfig(AppConfig):
    """Changes of the resources of all states, and of the workloads of all clusters."""

    name = "infra_service.change_history"
    label = "change_history"
    verbose_name = "Changes"

    def ready(self) -> None:
        # Imported here because these modules require the loaded apps.
        from infra_service.change_history import recording, workload_changes  # noqa: PLC0415
        from states.resources.indexing import version_found  # noqa: PLC0415
        from workloads.reporting.deployments import deployments_changed  # noqa: PLC0415

        version_found.connect(recording.receive)
        deployments_changed.connect(workload_changes.receive)
