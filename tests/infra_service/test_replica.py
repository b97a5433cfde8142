"""Lists, contents and differences from a real streaming replica, and never anything stale."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from infra_service.lib.database import replica
from infra_service.lib.database.checks import (
    replica_is_of_postgresql,
    replica_reports_its_position,
)
from tests.e2e.backend import Backend, document
from tests.support.postgres import Server
from tests.support.server import Answer, LiveServer
from tests.support.silent_line import SilentLine
from tests.support.waiting import wait_until

SCOPES = ("state:read", "state:write", "state:admin", "cluster:read", "cluster:write")


class Pair(NamedTuple):
    """A service with a primary and a replica, and a token for it."""

    service: LiveServer
    primary: Server
    replica: Server
    token: str

    def get(self, path: str) -> Answer:
        answer = self.service.request("GET", path, token=self.token)
        assert answer.status == 200, answer.body
        return answer

    def is_from_replica(self, path: str = "/api/v1/clusters") -> bool:
        return replica.HEADER in self.get(path).headers

    def vain_reads(self) -> int:
        """Return the number of reads that have waited for the replica in vain."""
        return self.service.log.read_text().count("replica not read")

    def on_replica(self, statement: str) -> None:
        with psycopg.connect(self.replica.url, autocommit=True) as standby:
            standby.execute(statement.encode())

    def path_of(self, backend: Backend) -> str:
        states = self.get("/api/v1/states").json()["states"]
        component_id = str(backend.component_id)
        (state,) = (s for s in states if s["component_id"] == component_id)
        return f"/api/v1/states/{state['id']}"

    def make_cluster(self, name: str) -> dict[str, Any]:
        body = f'{{"cluster": {{"name": "{name}"}}}}'.encode()
        headers = {"Content-Type": "application/json"}
        answer = self.service.request(
            "POST", "/api/v1/clusters", body, token=self.token, headers=headers
        )
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.json()["cluster"]
        return made

    def cluster_names(self) -> set[str]:
        return {cluster["name"] for cluster in self.get("/api/v1/clusters").json()["clusters"]}


@contextlib.contextmanager
def running(primary: Server | None = None) -> Iterator[Server]:
    """Run a primary, or a standby of it."""
    if settings.DATABASES["default"]["ENGINE"] != "infra_service.lib.database.postgresql":
        pytest.skip("a replica is one of PostgreSQL")
    with tempfile.TemporaryDirectory(prefix="infra-pg-") as directory:
        server = Server(Path(directory))
        if not (server.binaries / "pg_basebackup").exists():
            pytest.skip("no pg_basebackup here")
        if primary:
            server.create_as_replica_of(primary)
        else:
            server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextlib.contextmanager
def serving(
    primary: Server,
    standby: Server,
    beside: Pair | None = None,
    port: int | None = None,
    options: str = "",
) -> Iterator[Pair]:
    """Run the service with a primary and a replica; ``beside`` shares its users and secrets.

    ``port`` is that of a line to the replica. ``options`` are those of the primary's URL.
    """
    shared = beside.service.environment if beside else {}
    own = urlsplit(standby.url).port
    replica_url = standby.url.replace(f":{own}/", f":{port or own}/")
    urls = {
        "DATABASE_URL": primary.url + options,
        "DATABASE_REPLICA_URL": replica_url,
        "WEB_WORKERS": "1",
    }
    with (
        tempfile.TemporaryDirectory(prefix="infra-live-") as home,
        contextlib.closing(LiveServer(Path(home), **shared | urls)) as service,
    ):
        service.environment["BIND"] = f"127.0.0.1:{service.port}"
        if not beside:
            service.prepare()
        token = beside.token if beside else service.token(*SCOPES)
        service.start()
        yield Pair(service, primary, standby, token)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with (
        running() as primary,
        running(primary) as standby,
        serving(primary, standby) as pair,
    ):
        yield pair


@pytest.fixture
def paused(pair: Pair) -> Iterator[Pair]:
    """The replica receives, and shows nothing new."""
    pair.on_replica("SELECT pg_wal_replay_pause()")
    yield pair
    pair.on_replica("SELECT pg_wal_replay_resume()")


def test_lists_contents_and_differences_are_read_from_it(pair: Pair) -> None:
    backend = Backend(pair.service, pair.token)
    for serial in (1, 2):
        assert backend.push(document(serial)).status == 200
    path = pair.path_of(backend)

    for part in ("/versions", "/resources", "/outputs", "/versions/2/diff"):
        wait_until(lambda part=part: pair.is_from_replica(path + part), 60)
    wait_until(lambda: pair.is_from_replica("/api/v1/states"), 60)


def test_the_state_backend_and_single_resources_are_not(pair: Pair) -> None:
    backend = Backend(pair.service, pair.token)
    assert backend.push(document(1)).status == 200
    cluster = pair.make_cluster("single")
    wait_until(pair.is_from_replica, 60)

    assert replica.HEADER not in backend.get().headers
    assert not pair.is_from_replica(f"/api/v1/clusters/{cluster['id']}")
    assert not pair.is_from_replica("/v1/whoami")


def test_age_is_in_the_metrics(pair: Pair) -> None:
    wait_until(pair.is_from_replica, 60)
    metrics = pair.service.request("GET", "/metrics").body.decode()

    assert 'infra_replica_reads_total{outcome="replica"}' in metrics
    assert "infra_replica_age_seconds_count" in metrics


def test_list_contains_the_latest_write(pair: Pair) -> None:
    names = [f"written {number}" for number in range(20)]
    for name in names:
        pair.make_cluster(name)
        assert name in pair.cluster_names()


def test_replica_with_paused_replay_is_not_read(paused: Pair) -> None:
    cluster = paused.make_cluster("paused")

    assert "paused" in paused.cluster_names()
    assert not paused.is_from_replica()

    path = f"/api/v1/clusters/{cluster['id']}"
    assert paused.service.request("DELETE", path, token=paused.token).status == 204
    assert "paused" not in paused.cluster_names()
    backend = Backend(paused.service, paused.token)
    assert backend.push(document(1)).status == 200
    assert backend.push(document(2)).status == 200
    page = paused.get(f"{paused.path_of(backend)}/resources").json()
    assert page["version_number"] == 2


def test_a_revocation_that_it_has_not_yet_is_effective(pair: Pair) -> None:
    token = pair.service.token("cluster:read")
    other = pair._replace(token=token)
    wait_until(other.is_from_replica, 60)
    pair.on_replica("SELECT pg_wal_replay_pause()")
    try:
        pair.service.run_commands(("revoke_apikey", token))

        assert pair.service.request("GET", "/api/v1/clusters", token=token).status == 401
    finally:
        pair.on_replica("SELECT pg_wal_replay_resume()")


def test_it_catches_up_and_is_read_again(pair: Pair) -> None:
    pair.make_cluster("before")

    wait_until(pair.is_from_replica, 60)
    assert "before" in pair.cluster_names()


@pytest.mark.parametrize(
    ("leave", "come_back"), [(Server.crash, Server.start), (Server.freeze, Server.thaw)]
)
def test_without_it_the_primary_is_read(
    pair: Pair, leave: Callable[[Server], None], come_back: Callable[[Server], None]
) -> None:
    wait_until(pair.is_from_replica, 60)
    leave(pair.replica)
    seconds = []
    try:
        for number in range(5):
            name = f"{leave.__name__} {number}"
            pair.make_cluster(name)
            began = time.monotonic()
            assert name in pair.cluster_names()
            seconds.append(time.monotonic() - began)
            assert not pair.is_from_replica()
            time.sleep(replica.PAUSE / 2)
    finally:
        come_back(pair.replica)
    wait_until(pair.is_from_replica, 60)
    # The lag of 0.1 s plus the delay of a busy machine.
    assert max(seconds) < 1.5


def test_replica_of_a_former_primary_is_not_read(pair: Pair) -> None:
    """Its log may be ahead of the new primary's and have another content."""
    of_both = pair.cluster_names()
    with running(pair.primary) as promoted:
        promoted.promote()
        with serving(promoted, pair.replica, beside=pair) as new:
            new.make_cluster("of the new primary")
            pair.make_cluster("of the former primary")
            with psycopg.connect(pair.primary.url, autocommit=True) as ahead:
                ahead.execute("CREATE TABLE ahead AS SELECT generate_series(1, 200000)")
            wait_until(pair.is_from_replica)

            assert new.cluster_names() == of_both | {"of the new primary"}
            assert not new.is_from_replica()
            metrics = new.service.request("GET", "/metrics").body.decode()
            assert 'infra_replica_reads_total{outcome="behind"}' in metrics


def test_another_history_with_the_same_number_is_not_read(pair: Pair) -> None:
    """Of two promoted standbys, both on timeline 2, one is made a standby again."""
    of_both = pair.cluster_names()
    with running(pair.primary) as promoted, running(pair.primary) as other:
        for server in (promoted, other):
            server.promote()
        with psycopg.connect(other.url, autocommit=True) as ahead:
            ahead.execute("CREATE TABLE further AS SELECT generate_series(1, 200000)")
            ahead.execute("CHECKPOINT")
        other.stop()
        (other.directory / "data" / "standby.signal").touch()
        other.start()
        with serving(promoted, other, beside=pair) as new:
            for number in range(3):
                new.make_cluster(f"of the new primary {number}")
                assert f"of the new primary {number}" in new.cluster_names()
                assert not new.is_from_replica()
                time.sleep(replica.PAUSE)
            assert new.cluster_names() >= of_both
        # Nor if a service also uses the other server and leaves its mark there.
        other.stop()
        (other.directory / "data" / "standby.signal").unlink()
        other.start()
        with serving(other, other, beside=pair) as split:
            assert not split.is_from_replica()
        with psycopg.connect(other.url, autocommit=True) as ahead:
            ahead.execute("CHECKPOINT")
        other.stop()
        (other.directory / "data" / "standby.signal").touch()
        other.start()
        with serving(promoted, other, beside=pair) as new:
            for _ in range(3):
                assert "of the new primary 0" in new.cluster_names()
                assert not new.is_from_replica()
                time.sleep(replica.PAUSE)


def test_a_standby_that_a_pooler_takes_for_the_primary_is_read(pair: Pair) -> None:
    any_server = "?target_session_attrs=any"
    # Once a minute, a request records the use of the token, which a standby cannot.
    with psycopg.connect(pair.primary.url) as connected:
        connected.execute("UPDATE apikeys_accesstoken SET last_used_at = NULL")
    wait_until(pair.is_from_replica)
    with serving(pair.replica, pair.replica, beside=pair, options=any_server) as demoted:
        assert demoted.cluster_names() == pair.cluster_names()
        assert not demoted.is_from_replica()


@pytest.mark.django_db
def test_unreachable_replica_delays_lists_within_its_limits(pair: Pair) -> None:
    """The network vanishes; each further list pays at most once a second."""
    with (
        contextlib.closing(SilentLine(urlsplit(pair.replica.url).port or 5432)) as line,
        serving(pair.primary, pair.replica, beside=pair, port=line.port) as cut_off,
    ):
        wait_until(cut_off.is_from_replica)
        before = cut_off.vain_reads()
        line.cut()
        started, slowest, reads = time.monotonic(), 0.0, 0
        while time.monotonic() - started < 8:
            began = time.monotonic()
            assert not cut_off.is_from_replica()
            slowest, reads = max(slowest, time.monotonic() - began), reads + 1
        passed = time.monotonic() - started
        assert slowest < settings.DATABASE_REPLICA_MAX_LAG + replica.QUERY
        assert reads > 20
        assert 1 <= cut_off.vain_reads() - before <= 1 + passed / replica.PAUSE
        line.mend()
        wait_until(cut_off.is_from_replica)


def test_replica_is_not_queried_without_the_setting(
    db: None, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        assert replica.read(lambda alias: alias) == connection.alias


@pytest.mark.both
def test_a_check_reports_a_replica_of_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replica_is_of_postgresql() == []

    monkeypatch.setattr(replica, "ALIAS", "default")

    found = [error.id for error in replica_is_of_postgresql()]
    assert found == ([] if connection.vendor == "postgresql" else ["infra_service.E004"])


@pytest.mark.skipif(connection.vendor != "postgresql", reason="Aurora is a PostgreSQL")
def test_a_check_reports_a_replica_of_aurora(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert replica_reports_its_position(["default"]) == []
    monkeypatch.setattr(replica, "ALIAS", "default")
    assert replica_reports_its_position(["default"]) == []

    with connection.cursor() as cursor:
        cursor.execute("CREATE FUNCTION aurora_replica_status() RETURNS int RETURN 1")

    assert [error.id for error in replica_reports_its_position(["default"])] == [
        "infra_service.E011"
    ]
    assert replica_reports_its_position(None) == []
