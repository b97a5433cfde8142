"""The service's settings with secrets of this run only, and without those of ``var/``."""

import base64
import os
import secrets

os.environ.update(
    VAR_DIR="/nonexistent",
    SECRET_KEY=secrets.token_urlsafe(50),
    STATE_ENCRYPTION_KEYS=base64.b64encode(secrets.token_bytes(32)).decode(),
    # Tests of limits set their own.
    RATE_LIMIT_TOKEN="0",
    RATE_LIMIT_FAILURES="0",
    RATE_LIMIT_LOGINS="0",
)

from infra_service.settings import *  # noqa: F403 - after the environment

# Tests do not depend on a built site.
WHITENOISE_ROOT = None
# Passwords are hashed like the service's, with a single round in place of each million.
PASSWORD_HASHERS = ["tests.support.hashing.QuickPasswordHasher"]
