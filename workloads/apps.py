from django.apps import AppConfig


class WorkloadsConfig(AppConfig):
    """Clusters and the workloads that run in them."""

    name = "workloads"
    verbose_name = "Cluster workloads"

    def ready(self) -> None:
        from workloads import checks  # noqa: F401, PLC0415 - registers itself
