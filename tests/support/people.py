"""People in the admin, and the queries of their pages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apikeys.actors import Actor
from apikeys.models import User
from infra_service.console import groups


def person(*names: str, enforce_csrf_checks: bool = False, **user: Any) -> Client:
    """Return the browser of a logged-in person in these groups; without groups, without
    permissions.
    """
    if names and not Group.objects.filter(name__in=names).exists():
        groups.set_up(Actor(name="test"))
    given = {"username": f"{'-'.join(names) or 'nobody'}-person", "is_staff": True, **user}
    account, _ = User.objects.get_or_create(username=given["username"], defaults=given)
    account.groups.set(Group.objects.filter(name__in=names))
    client = Client(enforce_csrf_checks=enforce_csrf_checks)
    log_in(client, account)
    return client


def log_in(client: Client, user: User) -> None:
    """Give the browser a session, without a log-in in the audit log."""
    session = client.session
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key


def confirm(client: Client, address: str, given: Mapping[str, Any], **options: Any) -> Any:
    """Open the page of a tool, and submit its form."""
    context = client.get(address).context
    shown = {"displayed": context["displayed"]} if context else {}  # it redirects or refuses
    return client.post(address, {**shown, **given}, **options)


def text_of(answer: Any) -> str:
    """Return the text of a page, without its tags and with single spaces."""
    assert answer.status_code == 200, answer.content
    page = answer.content.decode().replace("<wbr>", "")
    found = html.unescape(re.sub(r"<[^>]+>", " ", page))
    return " ".join(found.split())


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect the statements of a page; no page may count rows."""
    ContentType.objects.get_for_models(*apps.get_models())  # queried once per process
    found: list[str] = []
    with CaptureQueriesContext(connection) as captured:
        yield found
    found += [query["sql"] for query in captured.captured_queries]
    # Except within an index, and up to a limit.
    assert not [sql for sql in found if "COUNT(" in sql.upper() and '"counted"' not in sql]


def reads_of(table: str, sqls: list[str]) -> list[str]:
    """Return the statements that list rows of the table; each must have a LIMIT."""
    reads = [sql for sql in sqls if sql.startswith("SELECT") and f'FROM "{table}"' in sql]
    assert all("LIMIT" in sql for sql in reads), reads
    return reads
