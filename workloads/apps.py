from django.apps import AppConfig


class WorkloadsConfig(AppConfig):
    """Clusters and the workloads that run in them."""

    name = "workloads"
    verbose_name = "Cluster workloads"
