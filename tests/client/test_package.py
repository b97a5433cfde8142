"""The client as a file, as an installed package, and in the documents."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra_service import __version__
from tests.client.running import CLIENT, Client
from tests.support.installation import ROOT


def test_only_the_standard_library_is_imported() -> None:
    tree = ast.parse(CLIENT.read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }

    assert imported <= sys.stdlib_module_names


def test_the_version_is_that_of_the_service(tmp_path: Path) -> None:
    assert Client(tmp_path).run("--version").stdout == f"infra {__version__}\n"
    configuration = (CLIENT.parent / "pyproject.toml").read_text()
    assert re.findall(r'^version = "(.*)"$', configuration, re.MULTILINE) == [__version__]


@pytest.mark.long
def test_pip_installs_the_command(tmp_path: Path) -> None:
    shutil.copytree(CLIENT.parent, tmp_path / "client")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [
        tmp_path / "venv/bin/python",
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--retries",
        "0",
    ]

    done = subprocess.run(
        [*pip, tmp_path / "client"], check=False, capture_output=True, text=True, timeout=300
    )

    if "for setuptools" in done.stderr or "requirement setuptools" in done.stderr:
        pytest.skip("the build needs a package index")
    assert done.returncode == 0, done.stderr
    installed = tmp_path / "venv/bin/infra"
    assert installed.read_text().splitlines()[1:] == CLIENT.read_text().splitlines()[1:]
    shown = subprocess.run([installed, "--version"], check=True, capture_output=True, text=True)
    assert shown.stdout == f"infra {__version__}\n"


def test_help_of_all_commands(tmp_path: Path) -> None:
    client = Client(tmp_path)
    shown = client.run("--help").stdout
    page = (ROOT / "docs/how-to/use-the-client.md").read_text()
    names = re.findall(r"^    (\w+)(?: |$)", shown, re.MULTILINE)

    assert len(names) >= 19
    for name in names:
        assert f"usage: infra {name}" in client.run(name, "--help").stdout
        assert f"`{name}" in page or f"infra {name}" in page, name
    # The exit codes of the help are those of the page.
    codes = re.findall(r"^  (\d+)[ ,]", shown, re.MULTILINE)
    assert len(codes) == 8
    assert codes == re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    client.run(code=2)
    client.run("nonsense", code=2)
    client.run("show", code=2)
