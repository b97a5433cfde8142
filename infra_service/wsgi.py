import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "infra_service.settings")

application = get_wsgi_application()

from infra_service.database.postgresql.base import DatabaseWrapper  # noqa: E402 - after set-up

# Requests are limited in time, commands are not.
DatabaseWrapper.serves_requests = True
