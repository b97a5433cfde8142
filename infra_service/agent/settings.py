"""Settings of ``sync_workloads --report-to``, which `manage.py` selects for agents.

An agent has no access to the service's secrets or to a database. Using either raises an error.
"""

import os

from infra_service.logs import is_for_people, minimum_severity

INSTALLED_APPS = ["infra_service.agent.apps.LogConfig", "infra_service.agent.apps.WorkloadsConfig"]
DATABASES: dict[str, object] = {}
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

LOG_LEVEL = minimum_severity(os.environ.get("LOG_LEVEL", "INFO"))
is_for_people()  # rejects an invalid LOG_FORMAT; the error of dictConfig does not name it
# Django's default logging would load pages, forms and models for its error e-mails.
LOGGING_CONFIG = None
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "infra_service.logs.formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
}
