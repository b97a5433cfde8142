from tests.workloads.conftest import cluster, workload

__all__ = ["cluster", "workload"]
