"""Admin pages of clusters and workloads."""

from workloads.admin import clusters, workloads  # noqa: F401 - they register their admins
