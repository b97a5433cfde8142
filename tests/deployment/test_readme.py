"""The README's commands for Docker, as far as they run without a container engine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.installation import ROOT


def commands() -> list[list[str]]:
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [shlex.split(line) for line in block.splitlines()]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in ("Makefile", ".env.example", "compose.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def settings(clone: Path) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", (clone / ".env").read_text(), re.MULTILINE))


def test_make_writes_the_secrets_once(clone: Path) -> None:
    make = commands()[0]
    assert make == ["make", ".env"]

    subprocess.run(make, cwd=clone, check=True)

    first = settings(clone)
    assert (clone / ".env").stat().st_mode & 0o777 == 0o600
    secrets = {n for n in first if n.endswith(("_PASSWORD", "_KEYS")) or n == "SECRET_KEY"}
    assert len({first[name] for name in secrets}) == len(secrets) == 5
    assert all(len(first[name]) >= 44 for name in secrets)
    example = dict(re.findall(r"^(\w+)=(.*)$", (clone / ".env.example").read_text(), re.MULTILINE))
    assert {n: v for n, v in first.items() if n not in secrets} == {
        n: v for n, v in example.items() if n not in secrets
    }
    # Also after an upgrade, which may change the example.
    os.utime(clone / ".env.example")
    subprocess.run(make, cwd=clone, check=True)
    assert settings(clone) == first


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is missing")
def test_compose_accepts_the_file(clone: Path) -> None:
    subprocess.run(commands()[0], cwd=clone, check=True)

    subprocess.run(["docker-compose", "config", "--quiet"], cwd=clone, check=True)


@pytest.mark.long
def test_commands_run_in_the_container(clone: Path) -> None:
    """With the container's environment, in this tree and on SQLite."""
    make, up, *inside = commands()
    assert up == ["docker", "compose", "up", "--build", "--detach"]
    subprocess.run(make, cwd=clone, check=True)
    environment = {
        "PATH": os.environ["PATH"],
        **{n: v for n, v in settings(clone).items() if "PASSWORD" not in n},
        "DATABASE_URL": f"sqlite:///{clone / 'db.sqlite3'}",
        "VAR_DIR": str(clone),
    }

    def manage(*arguments: str) -> str:
        command = [sys.executable, ROOT / "manage.py", *arguments]
        return subprocess.run(
            command, env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    manage("migrate", "--verbosity", "0")
    printed = ""
    for command in inside:
        assert command[:6] == ["docker", "compose", "exec", "service", "python", "manage.py"]
        arguments = command[6:]
        printed += manage(*arguments)

    assert re.search(r" TF_HTTP_PASSWORD=isp_\w{38}$", printed, re.MULTILINE)
    password = re.search(r"user operator, password (\S{16})$", printed, re.MULTILINE)
    assert password is not None
    assert "exists" in manage("first_operator")
    check = (
        "from apikeys.models import User;"
        f"print(User.objects.get(username='operator').check_password({password[1]!r}))"
    )
    assert manage("shell", "--no-imports", "-c", check) == "True\n"
