"""API keys, clusters and their clients, as the tests of keys and of workloads have them."""

from tests.apikeys.conftest import key_with, owner
from tests.workloads.conftest import cluster, workload

__all__ = ["cluster", "key_with", "owner", "workload"]
