"""Rate limits over worker processes, seen from outside."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.server import LiveServer, live_server

LIMIT = 20


def answered(server: LiveServer, token: str) -> Counter[int]:
    """Send three times what is allowed, each on a new connection, within one window."""
    left = 60 - time.time() % 60
    if left < 10:
        time.sleep(left)

    def send(_number: int) -> int:
        answer = server.request("GET", "/v1/whoami", token=token)
        if answer.status == 429:
            assert 1 <= int(answer.headers["Retry-After"]) <= 60
            assert answer.reason == "RATE_LIMITED"
        return answer.status

    with ThreadPoolExecutor(8) as pool:
        return Counter(pool.map(send, range(3 * LIMIT)))


def test_all_workers_count_together() -> None:
    with live_server(RATE_LIMIT_TOKEN=str(LIMIT), RATE_LIMIT_FAILURES=str(LIMIT)) as server:
        assert answered(server, server.token("state:read")) == {200: LIMIT, 429: 2 * LIMIT}
        assert answered(server, "wrong") == {401: LIMIT, 429: 2 * LIMIT}


def test_without_redis_requests_go_on() -> None:
    with live_server(RATE_LIMIT_TOKEN=str(LIMIT), CACHE_URL="redis://127.0.0.1:1/0") as server:
        assert answered(server, server.token("state:read")) == {200: 3 * LIMIT}

        logged = server.log.read_text()
    assert 1 <= logged.count("rate_limits_unavailable") <= 4
