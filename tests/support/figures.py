"""Parse metrics as Prometheus does."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import REGISTRY, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def figures(metrics: Iterable[Metric]) -> Figures:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for metric in metrics
        for sample in metric.samples
    }


def parsed(text: str) -> Figures:
    """Return the samples of an exposition."""
    return figures(text_string_to_metric_families(text))


def of(collector: Collector) -> Figures:
    """Return a collector's samples at a scrape."""
    return figures(collector.collect())


def value(found: Figures, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


class Since:
    """The increase of counters in this process since its creation."""

    def __init__(self) -> None:
        self._before = figures(REGISTRY.collect())

    def __call__(self, name: str, **labels: str) -> float:
        now = figures(REGISTRY.collect())
        return value(now, name, **labels) - value(self._before, name, **labels)
