"""API keys, clusters and their clients, as the tests of keys and of workloads have them."""

from infra_service import urls  # noqa: F401 - with the admin's pages, as in a worker
from tests.apikeys.conftest import key_with, owner
from tests.workloads.conftest import cluster, workload

__all__ = ["cluster", "key_with", "owner", "workload"]
