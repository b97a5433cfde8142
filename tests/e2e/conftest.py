"""Fixtures of the end-to-end tests: tokens, new states, the terraform binary, and a log check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.backend import Backend
from tests.e2e.terraform import BINARY, Terraform
from tests.support.server import LiveServer

_BAD_LINE = re.compile(r'Traceback|"status":500|unhandled_exception|is[kps]_[0-9A-Za-z]{38}')


@pytest.fixture(autouse=True)
def nothing_bad_in_the_log(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check the shared server's log after each test: no 500, no stack trace, no token."""
    if "live" not in request.fixturenames:
        yield
        return
    log = request.getfixturevalue("live").log
    before = log.stat().st_size
    yield
    with log.open("rb") as file:
        file.seek(before)
        new = file.read().decode()
    bad = [line for line in new.splitlines() if _BAD_LINE.search(line)]
    assert bad == []


@pytest.fixture(scope="session")
def tokens(live: LiveServer) -> list[str]:
    return live.tokens("state:read,state:write,state:admin", "state:read,state:write", "state:read")


@pytest.fixture(scope="session")
def token(tokens: list[str]) -> str:
    """A token with all permissions on states."""
    return tokens[0]


@pytest.fixture(scope="session")
def writer_token(tokens: list[str]) -> str:
    return tokens[1]


@pytest.fixture(scope="session")
def reader_token(tokens: list[str]) -> str:
    return tokens[2]


@pytest.fixture
def backend(live: LiveServer, token: str) -> Backend:
    """A new state."""
    return Backend(live, token)


MakeTerraform = Callable[..., Terraform]


@pytest.fixture
def terraform(tmp_path: Path, backend: Backend) -> MakeTerraform:
    """``terraform()``: a further working directory on the state of ``backend``."""
    if BINARY is None:
        pytest.skip("neither terraform nor tofu is on the PATH")
    made: list[Terraform] = []

    def make(
        configuration: str = "", *, address: str = "", password: str = "", init: bool = True
    ) -> Terraform:
        directory = tmp_path / f"tf{len(made)}"
        one = Terraform(directory, address or backend.address, password or backend.token)
        made.append(one)
        one.write(configuration)
        if init:
            one.run("init")
        return one

    return make
