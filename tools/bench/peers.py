"""The service with its peers: lists with standard DRF, and an ordinary state backend.

A live server can use this settings module.
"""

from __future__ import annotations

from infra_service.settings import *  # noqa: F403 - the same service

INSTALLED_APPS = [*INSTALLED_APPS, "tools.bench"]  # noqa: F405 - its settings
ROOT_URLCONF = "tools.bench.peers_urls"
# All requests of a benchmark use the same token.
RATE_LIMIT_TOKEN = 0
LOGGING = {"version": 1}
