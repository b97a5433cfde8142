"""Processes whose standard error is on a full disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.installation import ROOT


def run_without_log(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process that cannot write to its standard error."""
    with Path("/dev/full").open("w") as full:
        return subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE, stderr=full, text=True, cwd=ROOT, timeout=60, check=False,
        )  # fmt: skip
