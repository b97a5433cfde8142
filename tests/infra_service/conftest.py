"""What other tests have, as the tests of the project package use it."""

from tests.apikeys.conftest import key_with, owner
from tests.workloads.conftest import cluster, workload

__all__ = ["cluster", "key_with", "owner", "workload"]
