"""The checks of the gate that are no tests: ``python -m tests.gate [--write-openapi]``."""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

OPENAPI = Path(__file__).resolve().parent.parent / "docs" / "reference" / "openapi.yaml"


def main() -> None:
    """Fail on the first check that does not hold."""
    # As a deployment sets it: HTTPS, a proxy, real secrets.
    os.environ.update(
        DJANGO_SETTINGS_MODULE="infra_service.settings",
        VAR_DIR="/nonexistent",
        DATABASE_URL="sqlite://:memory:",
        SECRET_KEY=secrets.token_urlsafe(50),
        STATE_ENCRYPTION_KEYS=base64.b64encode(secrets.token_bytes(32)).decode(),
        SECURE_SSL_REDIRECT="true",
        SECURE_HSTS_SECONDS="31536000",
        BEHIND_TLS_PROXY="true",
    )
    import django  # noqa: PLC0415 - after the environment
    from django.core.management import call_command  # noqa: PLC0415 - after the environment

    django.setup()
    if "--write-openapi" in sys.argv:
        call_command("spectacular", file=str(OPENAPI), fail_on_warn=True, validate=True)
        return
    call_command("check", deploy=True, fail_level="WARNING")
    call_command("makemigrations", check_changes=True, dry_run=True)
    draft = OPENAPI.with_name("openapi.yaml.new")
    call_command("spectacular", file=str(draft), fail_on_warn=True, validate=True)
    fresh = draft.read_text()
    draft.unlink()
    if not OPENAPI.exists() or OPENAPI.read_text() != fresh:
        sys.exit("docs/reference/openapi.yaml is not what the views say: make openapi")


if __name__ == "__main__":
    main()
