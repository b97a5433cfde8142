"""A service with single sign-on, and its identity provider."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import requests

from apikeys.models import AuditEvent, User
from tests.support import commands
from tests.support.openid_provider import Provider, openid_provider
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT

T = TypeVar("T")
GROUPS = "platform-ops=operator,cn=admins=administrator,lost=no such group"


class Service(LiveServer):
    """The service, with access to its database."""

    unblock: Callable[[], Any]

    def send(self, work: Callable[[], T]) -> T:
        with self.unblock():
            return commands.on_database_of(self, work)

    def user(self, **found_by: Any) -> User:
        return self.send(lambda: User.objects.get(**found_by))

    def groups(self, user: User) -> list[str]:
        return self.send(lambda: sorted(user.groups.values_list("name", flat=True)))

    def events(self, *actions: str) -> list[AuditEvent]:
        """Return the newest first."""
        return self.send(
            lambda: list(AuditEvent.objects.filter(action__in=actions).order_by("-id"))
        )


@contextlib.contextmanager
def not_running(provider: Provider, unblock: Callable[[], Any]) -> Iterator[Service]:
    """Give a service for the provider's people, without a database."""
    with tempfile.TemporaryDirectory(prefix="infra-sign-on-") as directory:
        secret = Path(directory, "client_secret")
        secret.write_text(f"{provider.client_secret}\n")
        service = Service(
            Path(directory),
            OIDC_ISSUER=provider.url,
            OIDC_CLIENT_ID=provider.client_id,
            OIDC_CLIENT_SECRET_FILE=str(secret),
            OIDC_GROUP_MAP=GROUPS,
            RATE_LIMIT_LOGINS="0",
            ADMIN_LOGIN="oidc",
            REMOTE_BACKEND="true",
        )
        service.unblock = unblock
        with contextlib.closing(service):
            yield service


@pytest.fixture(scope="session")
def running_provider() -> Iterator[Provider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture
def provider(running_provider: Provider) -> Iterator[Provider]:
    """The provider with its default settings, and a person unique to the test."""
    running_provider.reset()
    yield running_provider
    running_provider.reset()


@pytest.fixture(scope="session")
def migrated(running_provider: Provider, django_db_blocker: Any) -> Iterator[Service]:
    """A service that is not started, whose migrated database is copied to save time."""
    with not_running(running_provider, django_db_blocker.unblock) as service:
        service.prepare()
        service.manage_all(("migrate", "--verbosity", "0"), ("setup_groups",))
        yield service


@contextlib.contextmanager
def service_like(migrated: Service, provider: Provider) -> Iterator[Service]:
    """Run a service with a copy of the database for as long as the block."""
    with not_running(provider, migrated.unblock) as service:
        service.copy_database(migrated)
        name = "DJANGO_SUPERUSER_PASSWORD"
        service.environment[name] = migrated.environment[name]
        service.start()
        provider.redirect_uris.add(f"{service.url}/admin/sign-on/callback/")
        provider.post_logout_redirect_uris.add(f"{service.url}/admin/login/")
        yield service


@pytest.fixture(scope="session")
def service(running_provider: Provider, migrated: Service) -> Iterator[Service]:
    with service_like(migrated, running_provider) as service:
        yield service


class Visitor(requests.Session):
    """Keeps cookies and follows redirects, as a browser does."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service

    def request(self, method: Any, url: Any, *args: Any, **options: Any) -> requests.Response:
        where = url if "://" in str(url) else f"{self.service.url}{url}"
        return super().request(method, where, *args, timeout=MAX_WAIT, **options)

    def sign_on(self, query: str = "") -> requests.Response:
        return self.get(f"/admin/sign-on/{query}")

    def log_in(self, username: str, password: str) -> requests.Response:
        page = self.get("/admin/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        assert token is not None
        form = {"username": username, "password": password, "csrfmiddlewaretoken": token[1]}
        return self.post("/admin/login/?next=/admin/", form, headers={"Referer": page.url})

    @property
    def is_in(self) -> bool:
        """Return whether the admin knows them."""
        return self.get("/admin/", allow_redirects=False).status_code == 200


@pytest.fixture
def visitor(service: Service) -> Iterator[Visitor]:
    with Visitor(service) as visitor:
        yield visitor
