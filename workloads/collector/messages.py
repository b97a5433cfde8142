"""Output of ``sync_workloads``: human-readable sentences, or JSON lines."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.collector.sync import Synced
    from workloads.collector.troubles import Trouble


def report_line(cluster: str, synced: Synced, *, as_json: bool) -> str:
    """Describe the changes of a report."""
    counts = dataclasses.asdict(synced.applied)
    if as_json:
        kind = "snapshot" if synced.complete else "delta"
        seconds = round(synced.seconds, 3)
        return json.dumps({"cluster": cluster, "report": kind, **counts, "seconds": seconds})
    summary = ", ".join(f"{number} {word}" for word, number in counts.items())
    return f"{cluster}: {summary} ({synced.seconds:.1f} s)"


def trouble_lines(cluster: str, troubles: Sequence[Trouble], *, as_json: bool) -> list[str]:
    """Describe why a cluster is not reported, or that its watch has been restored."""
    if as_json:
        summary = [
            {**dataclasses.asdict(trouble), "since": trouble.since.isoformat(timespec="seconds")}
            for trouble in troubles
        ]
        return [json.dumps({"cluster": cluster, "troubles": summary})]
    return [
        f"{cluster}: not reported, {trouble.resource} failed {trouble.failures} times since "
        f"{trouble.since:%H:%M:%S} UTC: {trouble.error}"
        for trouble in troubles
    ] or [f"{cluster}: watch restored"]
