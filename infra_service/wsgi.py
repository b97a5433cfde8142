import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "infra_service.settings")
django.setup(set_prefix=False)

from infra_service import urls  # noqa: E402, F401 - after set-up; before the first request
from infra_service.lib.api.limits import limiter  # noqa: E402 - after set-up
from infra_service.lib.database.postgresql.base import DatabaseWrapper  # noqa: E402 - after set-up
from infra_service.lib.server.handler import ServiceHandler  # noqa: E402 - after set-up
from infra_service.operations.tracing import traced  # noqa: E402 - after set-up

application = traced(ServiceHandler())
limiter()  # also connects to Redis, so that the first request does not wait

# Requests have database timeouts, but commands do not.
DatabaseWrapper.serves_requests = True
