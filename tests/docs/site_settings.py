"""The service's settings with a documentation site that a test has built."""

import os

from infra_service.settings import *  # noqa: F403 - the service's own

WHITENOISE_ROOT = os.environ["TEST_SITE"]
