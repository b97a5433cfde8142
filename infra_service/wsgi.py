import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "infra_service.settings")
django.setup(set_prefix=False)

from infra_service.database.postgresql.base import DatabaseWrapper  # noqa: E402 - after set-up
from infra_service.handler import ServiceHandler  # noqa: E402 - after set-up

application = ServiceHandler()

# Requests are limited in time, commands are not.
DatabaseWrapper.serves_requests = True
