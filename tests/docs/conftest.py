"""The environment of walked documents: an empty directory beside the service's code."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.walk import ROOT
from tests.e2e.terraform import BINARY
from tests.support.quickstart import Quickstart
from tests.support.server import LiveServer

#: Enough that some are locked: a document must not confuse them with the reader's own.
A_FEW = ("--states", "6", "--clusters", "1", "--workloads", "10")
needs_terraform = pytest.mark.skipif(
    BINARY is None or not BINARY.endswith("terraform"),
    reason="the documents show what terraform prints, and it is not on the PATH",
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A reader's directory, which contains only the clone."""
    if missing := [name for name in ("curl", "jq") if shutil.which(name) is None]:
        pytest.skip(f"the documents' commands need {' and '.join(missing)}, not on the PATH")
    (tmp_path / "infra-service").symlink_to(ROOT)
    return tmp_path


def readers(directory: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of a reader: of the machine's variables only the PATH.

    The service's settings stay, for the commands that run on the service's host.
    """
    settings = directory / "cli.tfrc"
    settings.write_text("disable_checkpoint = true\n")
    return {
        **{name: value for name, value in environment.items() if not name.startswith("TF_")},
        "PATH": os.environ["PATH"],
        "HOME": str(directory / "home"),
        "TF_CLI_CONFIG_FILE": str(settings),
        "CHECKPOINT_DISABLE": "1",
        # Like a terminal, where lines appear in the order in which they are written.
        "PYTHONUNBUFFERED": "1",
    }


def manage_py() -> dict[str, str]:
    """The command of a document that runs on the service's host."""
    return {".venv/bin/python manage.py": f"{sys.executable} {ROOT}/manage.py"}


@pytest.fixture(scope="session")
def service() -> Iterator[LiveServer]:
    """A live server for the walks, with existing data; its encryption keys are in service.env."""
    with tempfile.TemporaryDirectory(prefix="infra-docs-") as directory:
        # A worker takes a second to start, and a document has a single reader.
        server = LiveServer(Path(directory), WEB_WORKERS="1")
        with contextlib.closing(server):
            server.prepare()
            server.run_commands(("seed_demo", *A_FEW))
            keys = server.environment.pop("STATE_ENCRYPTION_KEYS")
            (server.directory / "service.env").write_text(f"STATE_ENCRYPTION_KEYS={keys}\n")
            server.start()
            yield server


@pytest.fixture
def quickstart(place: Path) -> Iterator[Quickstart]:
    """``make run``, with its data beside the clone."""
    (place / "place").mkdir()
    server = LiveServer(place / "place", WEB_WORKERS="1")
    one = Quickstart(server, place / "var")
    yield one
    one.close()
    server.close()
