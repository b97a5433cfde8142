"""Rate limits over worker processes, seen from outside."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.infra_service.real_redis import needs_redis, real_redis
from tests.support.server import LiveServer, live_server

LIMIT = 20
WINDOW = 60  # seconds
PAUSE = 5  # seconds between a worker's attempts to reach Redis, each logged


def answered(server: LiveServer, token: str) -> Counter[int]:
    """Send three times the limit, each request on a new connection, within a single window."""
    if time.time() % WINDOW > WINDOW - 10:
        wait_for_the_next_window()

    def send(_number: int) -> int:
        answer = server.request("GET", "/v1/whoami", token=token)
        if answer.status == 429:
            assert 1 <= int(answer.headers["Retry-After"]) <= 60
            assert answer.reason == "RATE_LIMITED"
        return answer.status

    while True:
        window = time.time() // WINDOW
        with ThreadPoolExecutor(8) as pool:
            statuses = Counter(pool.map(send, range(3 * LIMIT)))
        if time.time() // WINDOW == window:
            return statuses
        wait_for_the_next_window()


def wait_for_the_next_window() -> None:
    time.sleep(WINDOW - time.time() % WINDOW)


LIMITS = {"RATE_LIMIT_TOKEN": str(LIMIT), "RATE_LIMIT_FAILURES": str(LIMIT)}


def test_single_worker_counts_in_memory() -> None:
    with live_server(WEB_WORKERS="1", **LIMITS) as server:
        assert answered(server, server.token("state:read")) == {200: LIMIT, 429: 2 * LIMIT}
        assert answered(server, "wrong") == {401: LIMIT, 429: 2 * LIMIT}


def test_without_redis_each_worker_counts_for_itself() -> None:
    with live_server(WEB_WORKERS="2", **LIMITS) as server:
        assert LIMIT <= answered(server, server.token("state:read"))[200] <= 2 * LIMIT
        assert not [p.name for p in server.directory.iterdir() if "limit" in p.name]


@needs_redis
def test_with_redis_all_workers_count_together(tmp_path: Path) -> None:
    with (
        real_redis(tmp_path) as redis,
        live_server(WEB_WORKERS="2", CACHE_URL=redis.url, **LIMITS) as server,
    ):
        # On a machine under load an answer may take longer than is waited for; then requests go on
        # uncounted.
        for _ in range(5):
            counts = answered(server, server.token("state:read"))
            if counts == {200: LIMIT, 429: 2 * LIMIT}:
                break
            time.sleep(PAUSE)
    assert counts == {200: LIMIT, 429: 2 * LIMIT}


def test_while_redis_is_away_requests_go_on() -> None:
    # Counted from before the start, because the server also logs its first `/readyz` requests.
    started = time.monotonic()
    with live_server(RATE_LIMIT_TOKEN=str(LIMIT), CACHE_URL="redis://127.0.0.1:1/0") as server:
        token = server.token("state:read")
        assert answered(server, token) == {200: 3 * LIMIT}

        logged = server.log.read_text()
        passed = time.monotonic() - started
    workers = 2
    assert 1 <= logged.count("rate_limits_unavailable") <= workers * (1 + passed // PAUSE)
