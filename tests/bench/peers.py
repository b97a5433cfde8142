"""The service with two more lists of states, for tests.bench.lists: how DRF would have it.

A settings module and a URLconf in one, so that a live server can be started with it.
"""

from __future__ import annotations

from typing import Any

from infra_service.settings import *  # noqa: F403 - the same service

ROOT_URLCONF = "tests.bench.peers_urls"
# Every request of the bench is one token's.
RATE_LIMIT_TOKEN = 0
LOGGING: dict[str, Any] = {"version": 1}
