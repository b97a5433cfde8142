"""The settings of ``sync_workloads --report-to``, which `manage.py` takes instead of the service's.

An agent knows none of the service's secrets and has no database: each use of one is an error.
"""

import os

INSTALLED_APPS = ["infra_service.agent.apps.LogConfig", "infra_service.agent.apps.WorkloadsConfig"]
DATABASES: dict[str, object] = {}
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

LOG_LEVEL = os.environ.get("LOG_LEVEL", "INFO")
# Django's own set-up would load its pages, forms and models, for errors that are sent by mail.
LOGGING_CONFIG = None
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "infra_service.logs.formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
}
