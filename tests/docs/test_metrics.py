"""docs/reference/metrics.md names each metric with its type and labels, and nothing else."""

import re
from pathlib import Path

from prometheus_client import REGISTRY, Metric
from prometheus_client.metrics import MetricWrapperBase

from apikeys.metrics import Authentication
from infra_service.operations.metrics import DatabaseCollector, FileCollector

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md").read_text()
OURS = ("infra_", "django_http_")

Described = dict[str, tuple[str, set[str]]]


def exposed(metric: Metric) -> str:
    """Return the exposed name; counters have a suffix."""
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def counted() -> Described:
    """Return the metrics that processes count."""
    found = {}
    for collector in {*REGISTRY._collector_to_names}:
        if isinstance(collector, MetricWrapperBase):
            (metric,) = collector.describe()
            found[exposed(metric)] = (metric.type, set(collector._labelnames))
    return {name: metric for name, metric in found.items() if name.startswith(OURS)}


def collected() -> Described:
    """Return the metrics that are read at each scrape."""
    return {
        exposed(metric): (metric.type, set(metric._labelnames))
        for collector in (DatabaseCollector(), FileCollector())
        for metric in collector.collect()
    }


def test_documented_metrics_match(db: None) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ((?:`\w+`(?:, )?)*) ?\|", PAGE, re.MULTILINE)
    documented = {
        name: (type_, set(re.findall(r"`(\w+)`", labels))) for name, type_, labels in rows
    }

    assert documented == counted() | collected()
    assert len(rows) == len(documented)


def test_documented_authentication_results_match() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", PAGE, re.MULTILINE)

    assert rows == [result.value for result in Authentication]
