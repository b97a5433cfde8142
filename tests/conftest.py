"""The fixtures that every test shares."""

from __future__ import annotations

import contextlib
import datetime as dt
import gc
import json
import signal
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pytest
from django.test import Client
from hypothesis import settings as hypothesis_settings
from playwright.sync_api import Browser, Page
from structlog.contextvars import clear_contextvars
from whitenoise.middleware import WhiteNoiseMiddleware

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, User
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind
from infra_service import key_canary
from infra_service.lib.commandline import progress
from tests.support import commands as commands_here
from tests.support import templates
from tests.support.browser import chromium, page_of
from tests.support.installation import ROOT, Installation
from tests.support.parts import is_in_part
from tests.support.quick import Quick
from tests.support.server import LiveServer, live_server

# Wall-clock time depends on the load of the machine. Tests count queries instead, and tools/bench
# measures.
hypothesis_settings.register_profile("tests", deadline=None)
hypothesis_settings.register_profile("quick", deadline=None, max_examples=20)
hypothesis_settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="run what starts no process and opens no socket"
    )
    parser.addoption(
        "--part", action="store_true", help="run what the gate's part on this database runs"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background jobs ignore SIGINT, and programs that tests interrupt inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    templates.begin()
    if not config.getoption("numprocesses", None):
        # Before any test runs: with --quick, no test may start a process.
        templates.migrated()
    if config.getoption("quick"):
        hypothesis_settings.load_profile("quick")
        config.pluginmanager.register(Quick())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the slow tests first, so that at the end no core waits for another's last test.

    ``--dist worksteal`` first sends each worker an equal part of the list: each part begins with
    every n-th module of slow tests.
    """
    if config.getoption("part"):
        left = [item for item in items if not is_in_part(item)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if is_in_part(item)]
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    slow = [item for item in items if item.get_closest_marker("long")]
    modules = list(dict.fromkeys(item.path for item in slow))
    rest = [item for item in items if not item.get_closest_marker("long")]
    total, items[:] = len(items), []
    for worker in range(workers):
        items += [item for item in slow if modules.index(item.path) % workers == worker]
        count = max(0, total * (worker + 1) // workers - len(items))
        items += rest[:count]
        del rest[:count]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Exclude modules and collected tests, which stay until the end, from garbage collection.

    It would walk through 200,000 objects again and again: a sixth of the collection's time, and a
    tenth of the time of a small test. Rarer runs save a tenth of the rest.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """Use a copy of a database that is migrated once, instead of a migration in each process.

    Between tests, the database stays blocked. Otherwise, a test without ``db`` would commit rows.
    """
    with contextlib.ExitStack() as copy:
        with django_db_blocker.unblock():
            copy.enter_context(templates.copied_for_tests())
        yield
        with django_db_blocker.unblock():
            copy.close()


@pytest.fixture(scope="session")
def committed_template() -> Installation:
    """Return the template of the tests with a database of their own (tests/support/committed.py).

    It is separate from the tests' own database, which grows with each rollback.
    """
    return templates.migrated()


@pytest.fixture(scope="session", autouse=True)
def static_files_read_once() -> Iterator[None]:
    """Each test's client makes the middleware anew, and WhiteNoise reads some 175 files for it."""
    read = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, Any] = {}

    def read_once(self: WhiteNoiseMiddleware) -> None:
        if not found:
            read(self)
            found.update(self.files)
        self.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", read_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_run_here(django_db_blocker: Any) -> Iterator[None]:
    """Commands on live servers' databases are run here: another process takes a second to start."""

    def run_commands(server: LiveServer, *commands: Sequence[str]) -> list[str]:
        # Other code has other tables.
        if server.root != ROOT:
            return server.manage_all(*commands)
        with django_db_blocker.unblock():
            return commands_here.run(server, commands)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LiveServer, "run_commands", run_commands)
        yield


@pytest.fixture(scope="session", autouse=True)
def canary_is_verified() -> None:
    """Skip the verification before the first encryption: tests change keys, and count queries."""
    key_canary._is_verified = True


@pytest.fixture(autouse=True)
def empty_log_context() -> None:
    """Clear the log context per test: only requests end theirs."""
    clear_contextvars()


@pytest.fixture
def each_count_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress bar is drawn for each count, and not ten times a second."""
    monkeypatch.setattr(progress, "_SECONDS", 0)


@pytest.fixture(scope="session")
def live() -> Iterator[LiveServer]:
    """A live server with a database of its own, shared by the tests of this process."""
    with live_server(RATE_LIMIT_LOGINS="0") as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of one module, which may not use the database themselves."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, live: LiveServer) -> Iterator[Page]:
    """A page of the browser on the live server, not logged in."""
    with page_of(browser, live) as page:
        yield page


@pytest.fixture
def operator(db: None) -> User:
    """A user without permissions of their own; their tokens have the scopes."""
    return User.objects.create(username="operator", display_name="The operator")


class ApiClient(Client):
    """Django's test client with a token of its own. A 500 is an answer, as it is for users."""

    def __init__(self, secret: str, token: AccessToken) -> None:
        super().__init__(
            raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"}
        )
        self.secret = secret
        self.token = token

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a body as JSON."""
        content = b"" if body is None else json.dumps(body).encode()
        return self.generic(method, path, content, "application/json")

    def items(self, path: str, name: str, page_size: int = 100, **query: str) -> list[Any]:
        """Return all the items of a list, page after page."""
        items, token = [], ""
        while True:
            answer = self.get(path, {**query, "page_size": page_size, "page_token": token})
            assert answer.status_code == 200, answer.content
            items += answer.json()[name]
            token = answer.json()["next_page_token"]
            if not token:
                return items


class ClientWith(Protocol):
    """``client_with("state:read")``: a client whose token has just these scopes."""

    def __call__(
        self, *scopes: str, kind: TokenKind = TokenKind.PERSONAL, **binding: Any
    ) -> ApiClient: ...


@pytest.fixture
def client_with(operator: User) -> ClientWith:
    def make(*scopes: str, kind: TokenKind = TokenKind.PERSONAL, **binding: Any) -> ApiClient:
        token, secret = actions.issue_access_token(
            kind=kind,
            user=operator,
            name="test",
            scopes=[Scope(scope) for scope in scopes],
            expires_at=None,
            actor=Actor(name="test"),
        )
        if binding:
            AccessToken.objects.filter(pk=token.pk).update(**binding)
        return ApiClient(secret, token)

    return make


@pytest.fixture
def anonymous(db: None) -> Client:
    """A client without any token."""
    return Client(raise_request_exception=False)


def error_reason(response: Any) -> str:
    """Return the reason of an answer in the error form, after checking the form."""
    body = response.json()["error"]
    assert body["code"] == response.status_code
    info, *_, request_info = body["details"]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert info["domain"] == "infra-service"
    assert request_info == {
        "@type": "type.googleapis.com/google.rpc.RequestInfo",
        "request_id": response["X-Request-ID"],
    }
    reason: str = info["reason"]
    return reason


LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
