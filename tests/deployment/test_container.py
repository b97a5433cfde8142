"""Dockerfile and compose.yaml, tested without a container engine.

The image itself is not built here (docs/explanation/limits.md names where it was). Its content is
assembled from the files that the Dockerfile copies; its command and health check run on that.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra_service import gunicorn
from tests.support.installation import ROOT
from tests.support.server import LiveServer

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())


def instructions(stage: int = -1) -> list[tuple[str, str]]:
    """Return the instructions of a stage, in order."""
    lines = re.findall(r"^([A-Z]+) (.+)$", DOCKERFILE, re.MULTILINE)
    starts = [at for at, (name, _) in enumerate(lines) if name == "FROM"]
    ends = [*starts[1:], len(lines)]
    return lines[starts[stage] : ends[stage]]


def arguments(name: str, stage: int = -1) -> list[str]:
    return [argument for instruction, argument in instructions(stage) if instruction == name]


def each(name: str) -> list[str]:
    """Return the arguments of an instruction in all stages."""
    return [argument for stage in range(5) for argument in arguments(name, stage)]


@pytest.mark.parametrize("stage", [-1, -2])
def test_image_runs_as_an_unprivileged_user(stage: int) -> None:
    (user,) = arguments("USER", stage)
    names = [name for name, _ in instructions(stage)]

    assert int(user) >= 10_000
    # Root runs nothing afterwards.
    assert set(names[names.index("USER") :]).isdisjoint({"RUN", "COPY", "ADD"})


def test_the_base_is_a_release_and_the_packages_have_hashes() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    stages = set(re.findall(r"^FROM .+ AS (\S+)$", DOCKERFILE, re.MULTILINE))
    assert {re.sub(r"@sha256:\w{64}$", "", base) for base in bases} - stages == {
        "python:3.11-slim-bookworm"
    }
    for build in (0, 1, 2):
        assert "--require-hashes" in " ".join(arguments("RUN", build))
    assert "ADD" not in DOCKERFILE


def test_the_delay_before_the_shutdown_fits_into_the_time_of_a_pod() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    (text,) = re.findall(r"^```yaml\n# in the pod\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    pod = yaml.safe_load(text)
    (container,) = pod["containers"]
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    began = time.monotonic()
    subprocess.run(command, check=True)
    delay = time.monotonic() - began

    assert delay + gunicorn.graceful_timeout < pod["terminationGracePeriodSeconds"]


def test_no_secret_is_in_the_image() -> None:
    environment = "\n".join(each("ENV"))
    copied = "\n".join(each("COPY"))

    assert each("ARG") == ['EXTRAS=""']
    assert not re.search("SECRET|KEY|PASSWORD|TOKEN|DATABASE_URL", environment)
    assert not re.search(r"\.env|var\b|service\.env| \. ", copied)


@pytest.mark.parametrize("extras", ["", "sso", "sso s3 kubernetes otel"])
def test_extras_are_installed_with_their_hashes(extras: str, tmp_path: Path) -> None:
    """With the image's own command; a stub of pip records its arguments."""
    pip = tmp_path / "pip"
    pip.write_text('#!/bin/sh\necho "$@" >> pip.log\n')
    pip.chmod(0o755)
    (command,) = [run for run in arguments("RUN", 0) if " install " in run]
    subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "EXTRAS": extras},
    )  # fmt: skip

    installed = (tmp_path / "pip.log").read_text().splitlines()
    lists = [
        "requirements.txt", *(f"requirements-{extra}.txt" for extra in extras.split())
    ]  # fmt: skip
    assert [line.rpartition("--require-hashes -r ")[2] for line in installed] == lists
    (copied,) = arguments("COPY", 0)
    assert set(lists) <= set(copied.split())


def test_each_extra_has_its_packages_in_the_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (copied,) = arguments("COPY", 0)

    assert {f"requirements-{extra}.txt" for extra in project["optional-dependencies"]} <= set(
        copied.split()
    )


def test_build_context_contains_the_copied_files() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    copied = {
        source
        for argument in each("COPY")
        if not argument.startswith("--from")
        for source in argument.split()[:-1]
    }

    assert ignore[0] == "*"
    assert copied == let_in
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "tools"}
    assert packages | {"docs", "deploy", "tools/site"} == {
        name for name in copied if (ROOT / name).is_dir()
    }


def environment() -> dict[str, str]:
    """Return the variables of ENV, without PATH."""
    pairs = [pair.split("=", 1) for line in arguments("ENV") for pair in shlex.split(line)]
    return {name: value for name, value in pairs if name != "PATH"}


class Image(LiveServer):
    """A server that runs the image's command on the image's files."""

    def __init__(self, app: Path, var: Path) -> None:
        super().__init__(var)
        self.app = app
        given = environment()
        assert (given["VAR_DIR"], given["BIND"]) == ("/tmp", "0.0.0.0:8000")
        self.environment |= {**given, "VAR_DIR": str(var), "BIND": f"127.0.0.1:{self.port}"}
        self.environment.pop("PYTHONPATH", None)

    def run(self, *command: str) -> None:
        subprocess.run([sys.executable, *command], cwd=self.app, env=self.environment, check=True)

    def run_as_typed(self, line: str) -> None:
        """Run a line of shell; python is the environment's."""
        line = line.replace("python ", f"{shlex.quote(sys.executable)} ")
        subprocess.run(["sh", "-c", line], cwd=self.app, env=self.environment, check=True)

    def start(self) -> None:
        (command,) = arguments("CMD")
        program, *rest = json.loads(command)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", program, *rest],
                cwd=self.app,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait_until_ready(self._process)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Path]:
    """The files that the Dockerfile copies; not writable."""
    app = tmp_path / "app"
    copy(app)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "."], cwd=app, check=True)
    inside = [app, *app.rglob("*")]
    for path in inside:
        path.chmod(path.stat().st_mode & ~0o222)
    yield app
    for path in inside:
        path.chmod(path.stat().st_mode | 0o200)


def copy(app: Path, stage: int = -1) -> None:
    """Copy the files of a stage of the Dockerfile."""
    app.mkdir()
    for argument in arguments("COPY", stage):
        if argument.startswith("--from"):
            continue
        *sources, _target = argument.split()
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, app / source, ignore=_ignored)
            else:
                shutil.copy(ROOT / source, app)


def _ignored(_directory: str, names: list[str]) -> set[str]:
    return set(fnmatch.filter(names, "__pycache__"))


def packages_of_the_agent(directory: Path) -> Path:
    """Provide a directory with only the packages of the agent's image."""
    directory.mkdir()
    pinned = re.findall(
        r"^([\w.-]+)==\S+( ; )?", (ROOT / "requirements-agent.txt").read_text(), re.MULTILINE
    )
    for name in [name for name, only_elsewhere in pinned if not only_elsewhere]:
        for file in metadata.files(name) or []:
            top = directory / file.parts[0]
            if file.parts[0] != ".." and not top.exists():
                top.symlink_to(Path(str(metadata.distribution(name).locate_file(file.parts[0]))))
    return directory


def test_the_agents_image_needs_no_other_file(tmp_path: Path) -> None:
    """It runs until it needs a pod's account."""
    copy(tmp_path / "app", -2)
    packages = packages_of_the_agent(tmp_path / "packages")
    (entry,) = arguments("ENTRYPOINT", -2)
    program, *command = json.loads(entry)
    options = ["--cluster", "01a1fd68-ca28-7587-abb0-61c48a8a8478", "--token-file", "token"]
    started = subprocess.run(
        [sys.executable, "-S", *command, "--report-to", "https://infra.example.com", *options],
        cwd=tmp_path / "app", env={"PYTHONPATH": str(packages)}, stderr=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip

    assert program == "python"
    assert started.stderr.startswith("CommandError: The process does not run in a pod: ")


@pytest.mark.long
def test_the_documentation_is_built_from_the_copied_files(tmp_path: Path) -> None:
    app = tmp_path / "app"
    copy(app, 2)
    _venv, _install, build = arguments("RUN", 2)
    assert build.startswith("/venv/bin/python -m ")
    subprocess.run([sys.executable, *build.split()[1:]], cwd=app, check=True)

    assert (app / "site" / "docs" / "how-to" / "deploy" / "index.html").is_file()
    assert "--from=docs /app/site site" in arguments("COPY")


def listing(directory: Path) -> dict[str, tuple[int, int]]:
    """Return every file with its size and time: root may write even read-only files."""
    found = {str(p): p.stat() for p in directory.rglob("*")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


def test_it_starts_answers_and_writes_only_where_it_may(app: Path, tmp_path: Path) -> None:
    var = tmp_path / "tmp"
    var.mkdir()
    before = listing(app)
    image = Image(app, var)
    try:
        shell, flag, line = COMPOSE["services"]["migrate"]["command"]
        assert (shell, flag) == ("sh", "-c")
        image.create_database()
        # Only PostgreSQL has roles; tests/deployment/test_roles.py makes them.
        image.run_as_typed(line.removesuffix(" && python manage.py grant_service_role infra"))
        image.start()
        _head, check = arguments("HEALTHCHECK")[0].split(" CMD ")
        program, flag, code = json.loads(check)
        assert (program, flag) == ("python", "-c")
        image.run(flag, code.replace(":8000/", f":{image.port}/"))
        assert image.request("GET", "/metrics").status == 200
        assert image.request("GET", "/admin/login/").status == 200
        assert image.request("GET", "/static/admin/css/base.css").status == 200
        assert image.stop() == 0
    finally:
        image.close()

    assert listing(app) == before
    assert {path.name for path in var.iterdir()} - {"server.log"} <= {
        "metrics", "db.sqlite3", "db.sqlite3-wal", "db.sqlite3-shm",
    }  # fmt: skip
