"""Scripts in a new Python process, for tests of modules and of what Django finds in them."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.installation import ROOT
from tests.support.waiting import MAX_WAIT


def output_of(script: str, *arguments: str, **environment: str) -> str:
    """Run a script with the settings of the tests, and return its output. Warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", **environment},
        stdout=subprocess.PIPE,
        text=True,
        timeout=MAX_WAIT,
        check=True,
    )
    return done.stdout
