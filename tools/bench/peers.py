"""The service together with its peers: lists with standard DRF, and an ordinary backend.

A settings module and URLconf in one, so that a live server can use it.
"""

from __future__ import annotations

from typing import Any

from infra_service.settings import *  # noqa: F403 - the same service

INSTALLED_APPS = [*INSTALLED_APPS, "tools.bench"]  # noqa: F405 - its settings
ROOT_URLCONF = "tools.bench.peers_urls"
# All requests of the benchmark use a single token.
RATE_LIMIT_TOKEN = 0
LOGGING: dict[str, Any] = {"version": 1}
