"""Clusters and what runs in them, in the admin."""

from workloads.admin import clusters, workloads  # noqa: F401 - they register their admins
