"""docs/how-to/troubleshooting.md shows the messages of the code and of the real Terraform."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import environ.environ
import pytest

from tests.docs.conftest import needs_terraform
from tests.docs.walk import ROOT
from tests.e2e.terraform import Terraform, ended
from tests.support.server import LiveServer

PAGE = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text()
PACKAGES = ("infra_service", "apikeys", "states", "workloads", "filterlang")


def messages(title: str) -> list[str]:
    """Return the messages in the table of a section."""
    (section,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def texts() -> Iterator[str]:
    """Yield the string constants of the packages, with "…" for values, and the templates.

    The reader of settings prints messages of its own.
    """
    yield Path(environ.environ.__file__).read_text()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.html"):
            yield path.read_text()
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
                    yield "".join(map(str, parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


SECTIONS = ("Refused pushes", "API clients", "Start and settings", "Operation", "Admin")
OURS = [message for title in SECTIONS for message in messages(title)]


def test_all_messages_are_found() -> None:
    rows = re.findall(r"^\| `[^`]+` \|", PAGE, re.MULTILINE)

    assert len(OURS) + len(messages("Terraform and OpenTofu")) == len(rows) > 25


@pytest.fixture(scope="module")
def code() -> list[str]:
    return [" ".join(text.split()) for text in texts()]


@pytest.mark.slow
@pytest.mark.parametrize("message", OURS)
def test_the_code_has_the_message(message: str, code: list[str]) -> None:
    pattern = re.compile(".*".join(map(re.escape, message.split("…"))))

    assert any(pattern.search(text) for text in code)


@needs_terraform
@pytest.mark.terraform
@pytest.mark.long
def test_terraform_prints_the_messages(service: LiveServer, tmp_path: Path) -> None:
    plain, locking = service.tokens("state:read", "state:read,state:write,state:admin")
    base = f"{service.url}/api/v1/state/at"
    address = f"{base}/troubleshooting/test"
    configuration = 'resource "terraform_data" "one" { input = "a" }\n'
    printed = []

    def terraform(name: str, where: str, token: str, *commands: str) -> None:
        directory = Terraform(tmp_path / name, where, token)
        directory.write(configuration)
        printed.extend(ended(directory.start(*command.split())).out for command in commands)

    apply = "apply -auto-approve"
    terraform("first", address, locking, "init", apply)
    terraform("unknown", address, "isp_unknown", "init")
    terraform("reader", address, plain, "init", apply)
    terraform("form", f"{base}/troubleshooting", locking, "init")
    # A port that is not used.
    terraform("away", "http://127.0.0.1:9/api/v1/state/at/a/b", locking, "init")

    lock = {"ID": "95fbd66a-e378-a0c7-cc59-b576cc759358", "Who": "ada@laptop"}
    path = "/api/v1/state/at/troubleshooting/test"
    assert (
        service.request("LOCK", path, token=locking, body=json.dumps(lock).encode()).status == 200
    )
    terraform("second", address, locking, "init", apply)
    refused = Terraform(tmp_path / "unlocked", address, locking)
    refused.write(configuration.replace('"a"', '"b"'))
    commands = ("init", f"{apply} -lock=false")
    printed.extend(ended(refused.start(*command.split())).out for command in commands)
    assert (
        service.request("UNLOCK", path, token=locking, body=json.dumps(lock).encode()).status == 200
    )

    listed = service.request("GET", "/api/v1/states?page_size=100", token=plain).json()["states"]
    (state,) = (s for s in listed if s["component_slug"] == "troubleshooting")
    frozen = service.request(
        "POST",
        f"/api/v1/states/{state['id']}:freeze",
        b'{"reason": "maintenance"}',
        token=locking,
        headers={"Content-Type": "application/json"},
    )
    assert frozen.status == 200
    terraform("third", address, locking, "init", apply)

    text = "\n".join(printed)
    missing = [
        message
        for message in messages("Terraform and OpenTofu")
        if not re.search(".*".join(map(re.escape, message.split("…"))), text)
    ]
    assert missing == [], text
