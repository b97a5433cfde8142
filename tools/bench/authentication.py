"""Measure the cost of authentication: ``python -m tools.bench.authentication`` (on PostgreSQL).

The same empty DRF view runs without authentication, with this service's authentication, with
djangorestframework-api-key and with django-rest-knox, in this process and without sockets. Each
variant runs as a complete request (the WSGI application with middleware, access event and pooled
connection), to which the target applies, and as a bare view (resolver, DRF, view). The variants
alternate, so that a noisy machine affects all of them equally. The comparison uses the median CPU
time of this process. The output also contains the wall time, which includes PostgreSQL.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from tools.bench.figures import Figure, publish

ROUNDS = 400
BATCH = 5
TARGET = 1.8

urlpatterns: list[Any] = []


def configure() -> str:
    """Set up Django with the peers on a new database, and return its name."""
    url = os.environ["DATABASE_URL"]
    name = f"bench_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    os.environ.update(
        DATABASE_URL=f"{url.rpartition('/')[0]}/{name}", DJANGO_SETTINGS_MODULE="tests.settings"
    )
    import django
    from django.conf import settings

    settings.ROOT_URLCONF = __name__
    settings.INSTALLED_APPS += ["rest_framework_api_key", "knox"]
    settings.RATE_LIMIT_TOKEN = 1_000_000_000
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    return name


def authorizations() -> dict[str, str]:
    """Return the Authorization header of each variant."""
    from knox.models import AuthToken
    from rest_framework_api_key.models import APIKey

    from apikeys import actions
    from apikeys.actors import Actor
    from apikeys.callers import find_caller
    from apikeys.models import User
    from apikeys.scopes import Scope
    from apikeys.tokens import TokenKind

    user, actor = User.objects.create(username="bench"), Actor(name="bench")
    common: dict[str, Any] = {"name": "b", "scopes": [Scope.STATE_READ], "expires_at": None}
    kind = TokenKind.PERSONAL
    _, personal = actions.issue_access_token(kind=kind, user=user, actor=actor, **common)
    _, key = actions.create_api_key(user_id=user.pk, actor=actor, **common)
    _, minted = actions.mint_access_token(
        caller=find_caller(key), kind=kind, ttl=dt.timedelta(hours=12), actor=actor, **common
    )
    _, peer_key = APIKey.objects.create_key(name="bench")
    _, knox = AuthToken.objects.create(user=user)
    return {
        "no authentication": "",
        "ours, personal token": f"Bearer {personal}",
        "ours, minted token": f"Bearer {minted}",
        "ours, API key": f"Bearer {key}",
        "ours, with rate limit": f"Bearer {personal}",
        "djangorestframework-api-key": f"Api-Key {peer_key}",
        "django-rest-knox": f"Token {knox}",
    }


def views() -> dict[str, Any]:
    """Return the same view for each variant."""
    from knox.auth import TokenAuthentication as KnoxAuthentication
    from rest_framework.permissions import IsAuthenticated
    from rest_framework.response import Response
    from rest_framework.views import APIView
    from rest_framework_api_key.permissions import HasAPIKey

    from apikeys.permissions import ANY_TOKEN
    from apikeys.scopes import Scope

    class Plain(APIView):
        authentication_classes: Any = ()
        permission_classes: Any = ()
        throttle_classes: Any = ()

        def get(self, _request: Any) -> Response:
            return Response({"status": "ok"})

    class Ours(Plain):
        authentication_classes = APIView.authentication_classes
        permission_classes = APIView.permission_classes
        token_kinds = ANY_TOKEN
        required_scopes = {"GET": Scope.STATE_READ}

    class OursLimited(Ours):
        throttle_classes = APIView.throttle_classes

    class PeerApiKey(Plain):
        permission_classes = (HasAPIKey,)

    class OnlyTheUser(KnoxAuthentication):
        """knox without ``request.auth``, for which our middleware expects its own type."""

        def authenticate(self, request: Any) -> Any:
            return super().authenticate(request)[0], None

    class PeerKnox(Plain):
        authentication_classes = (OnlyTheUser,)
        permission_classes = (IsAuthenticated,)

    return {
        "no authentication": Plain,
        "ours, personal token": Ours,
        "ours, minted token": Ours,
        "ours, API key": Ours,
        "ours, with rate limit": OursLimited,
        "djangorestframework-api-key": PeerApiKey,
        "django-rest-knox": PeerKnox,
    }


def requests() -> dict[str, dict[str, Callable[[], Any]]]:
    """Return functions that send a request, by form (complete or bare) and variant."""
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
    from django.urls import path

    whole: Any = WSGIHandler()
    settings.MIDDLEWARE = []
    bare = WSGIHandler()
    functions: dict[str, dict[str, Callable[[], Any]]] = {"whole request": {}, "bare view": {}}
    served = views()
    for name, authorization in authorizations().items():
        place = f"{len(urlpatterns)}"
        urlpatterns.append(path(place, served[name].as_view()))
        environ = {
            "REQUEST_METHOD": "GET", "PATH_INFO": f"/{place}", "SERVER_NAME": "localhost",
            "SERVER_PORT": "80", "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "localhost",
            "wsgi.input": sys.stdin.buffer, "wsgi.url_scheme": "http",
        }  # fmt: skip
        if authorization:
            environ["HTTP_AUTHORIZATION"] = authorization

        def send_whole(environ: dict[str, Any] = environ) -> None:
            statuses: list[str] = []
            response = whole(dict(environ), lambda status, _: statuses.append(status))
            assert statuses == ["200 OK"], b"".join(response)
            response.close()

        def send_bare(environ: dict[str, Any] = environ) -> None:
            response: Any = bare.get_response(WSGIRequest(dict(environ)))
            assert response.status_code == 200, response.content

        functions["whole request"][name] = send_whole
        functions["bare view"][name] = send_bare
    return functions


def measure(functions: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, float]]:
    """Return the median CPU and wall time of each variant, in microseconds."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    order = list(functions)
    for number in range(ROUNDS + 20):
        random.shuffle(order)
        for name in order:
            cpu, wall = time.process_time_ns(), time.perf_counter_ns()
            for _ in range(BATCH):
                functions[name]()
            if number >= 20:
                spent = (time.process_time_ns() - cpu, time.perf_counter_ns() - wall)
                taken[name].append((spent[0] / BATCH / 1000, spent[1] / BATCH / 1000))
    return {
        name: (statistics.median(c for c, _ in pairs), statistics.median(w for _, w in pairs))
        for name, pairs in taken.items()
    }


def against_the_rest(figures: dict[str, tuple[float, float]]) -> list[Figure]:
    """Compare our slowest variant with each peer, and with a view without authentication."""
    ways = {way: cpu for way, (cpu, _wall) in figures.items()}
    worst = max(cpu for way, cpu in ways.items() if way.startswith("ours"))
    common: dict[str, Any] = {"work": "authenticated request, CPU", "ours": worst, "unit": "µs"}
    without = ways["no authentication"]
    name = "the same view without authentication"
    peers = (way for way in ways if way.startswith("dj"))
    return [
        Figure(**common, peer=without, peer_name=name, at_most=TARGET),
        *(Figure(**common, peer=ways[peer], peer_name=peer, at_least=1) for peer in peers),
    ]


def main() -> None:
    url, name = os.environ["DATABASE_URL"], configure()
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # access events are written but discarded
        for kind, functions in requests().items():
            figures = measure(functions)
            base = figures["no authentication"]
            print(f"{kind:30}{'CPU µs':>9}{'ratio':>8}{'wall µs':>10}{'ratio':>8}")
            for way, (cpu, wall) in figures.items():
                print(f"  {way:28}{cpu:9.0f}{cpu / base[0]:8.2f}{wall:10.0f}{wall / base[1]:8.2f}")
            print()
            if kind == "whole request":
                publish(*against_the_rest(figures))
    finally:
        from django.db import connection

        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        Path(f"/tmp/{name}").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
