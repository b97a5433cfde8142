"""Settings of ``sync_workloads --report-to``, which `manage.py` selects for agents.

An agent has no access to the service's secrets or to a database. Using either raises an error.
"""

import os

from infra_service.logs import minimum_severity, of_standard_library

INSTALLED_APPS = ["infra_service.agent.apps.LogConfig", "infra_service.agent.apps.WorkloadsConfig"]
DATABASES: dict[str, object] = {}
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

LOG_LEVEL = minimum_severity(os.environ.get("LOG_LEVEL", "INFO"))
# Django's default logging would load pages, forms and models for its error e-mails.
LOGGING_CONFIG = None
LOGGING = of_standard_library(LOG_LEVEL)
