"""The service with its peers beside it: lists as DRF would have them, and an ordinary backend.

A settings module and a URLconf in one, so that a live server can be started with it.
"""

from __future__ import annotations

from typing import Any

from infra_service.settings import *  # noqa: F403 - the same service

INSTALLED_APPS = [*INSTALLED_APPS, "tools.bench"]  # noqa: F405 - its settings
ROOT_URLCONF = "tools.bench.peers_urls"
# Every request of the bench is one token's.
RATE_LIMIT_TOKEN = 0
LOGGING: dict[str, Any] = {"version": 1}
