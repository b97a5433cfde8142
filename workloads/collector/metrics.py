"""What pods use, from the metrics API, which may be missing, dead or forbidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from workloads.collector.client import Resource
from workloads.collector.errors import ClosedError, KubernetesError, RefusedError
from workloads.kubernetes.reduce import reduce_pod_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workloads.collector.client import ClusterClient
    from workloads.kubernetes.facts import PodKey, Usage

log = structlog.get_logger("workloads.collector")

_GROUP: Final = "/apis/metrics.k8s.io/v1beta1"
# Pods are listed by namespace, so that one is mostly enough.
_NAMESPACES_KEPT: Final = 2


class PodUsage:
    """Usage by pod, read a namespace at a time: the metrics API has no pages.

    Once it fails, usage is unknown for the whole report, since a part of it would be a wrong sum;
    `lost` says so.
    """

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._kept: dict[str, dict[PodKey, Usage]] = {}
        self.lost = False

    def get(self, key: PodKey) -> Usage | None:
        """Return what the pod uses; None when there are no metrics of it."""
        if self.lost:
            return None
        if key.namespace not in self._kept:
            if len(self._kept) == _NAMESPACES_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key.namespace] = self._read(key.namespace)
        return self._kept[key.namespace].get(key)

    def read_all(self, namespaces: Iterable[str]) -> dict[PodKey, Usage] | None:
        """Return the usage of all pods of these namespaces, or None when it is unknown."""
        usage: dict[PodKey, Usage] = {}
        for namespace in namespaces:
            usage.update(self._read(namespace))
            if self.lost:
                return None
        return usage

    def _read(self, namespace: str) -> dict[PodKey, Usage]:
        resource = Resource(f"{_GROUP}/namespaces/{namespace}/pods")
        try:
            page = self._client.whole(resource)
            return dict(filter(None, map(reduce_pod_metrics, page.objects())))
        except ClosedError:
            raise
        except KubernetesError as error:
            self.lost = True
            status = error.status if isinstance(error, RefusedError) else None
            log.warning("metrics_unavailable", status=status, error=str(error))
            return {}
