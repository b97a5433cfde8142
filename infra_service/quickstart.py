"""``make run``: from nothing to a running service, and again with the data that is there."""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import sys
import textwrap
from pathlib import Path

from uuid_utils.compat import uuid7

_ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Prepare secrets, database, operator and token, then become gunicorn."""
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port
    _write_secrets(Path(os.environ.get("VAR_DIR", _ROOT / "var")))
    os.environ["DJANGO_SETTINGS_MODULE"] = "infra_service.settings"
    _prepare_database()
    _introduce(port)
    sys.stdout.flush()
    os.environ.setdefault("BIND", f"127.0.0.1:{port}")
    arguments = ["gunicorn", "-c", "python:infra_service.gunicorn", "infra_service.wsgi"]
    os.execv(sys.executable, [sys.executable, "-m", *arguments])  # noqa: S606 - our own server


def _write_secrets(var: Path) -> None:
    """Generate the secrets once, readable by the owner alone; the environment may override them."""
    var.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = var / "service.env"
    if path.exists():
        return
    lines = (
        f"SECRET_KEY={secrets.token_urlsafe(50)}",
        f"STATE_ENCRYPTION_KEYS={base64.b64encode(secrets.token_bytes(32)).decode()}",
    )
    # Whole or not at all: a half-written key would lock the states up for ever.
    draft = var / "service.env.new"
    draft.touch(mode=0o600)
    draft.write_text("\n".join(lines) + "\n")
    draft.rename(path)


def _prepare_database() -> None:
    import django  # noqa: PLC0415 - the secrets must exist before the settings are read

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415 - after set-up

    call_command("migrate", verbosity=0)


def _introduce(port: int) -> None:
    """Print what a newcomer needs; the password and the token are shown on the first start only."""
    from apikeys import actions  # noqa: PLC0415 - after set-up
    from apikeys.audit import Actor  # noqa: PLC0415 - after set-up
    from apikeys.models import User  # noqa: PLC0415 - after set-up
    from apikeys.scopes import Scope  # noqa: PLC0415 - after set-up
    from apikeys.tokens import TokenKind  # noqa: PLC0415 - after set-up

    out = sys.stdout.write
    operator = User.objects.filter(username="operator").first()
    if operator is not None:
        out(_AGAIN.format(port=port))
        return
    password = secrets.token_urlsafe(12)
    operator = User.objects.create_superuser("operator", password=password, display_name="Operator")
    _token, secret = actions.issue_access_token(
        kind=TokenKind.PERSONAL,
        user=operator,
        name="first token",
        scopes=list(Scope),
        expires_at=None,
        actor=Actor(name="make run"),
    )
    address = f"http://127.0.0.1:{port}/api/v1/state/{uuid7()}/env/{uuid7()}"
    out(_FIRST.format(port=port, password=password, token=secret, address=address))


_FIRST = textwrap.dedent("""\
    The service listens on http://127.0.0.1:{port}; Ctrl-C stops it.

    Shown only now:
      admin     http://127.0.0.1:{port}/admin/  operator  {password}
      token     {token}

    Paste this into a Terraform configuration; the two ids name a component and an environment.

    terraform {{
      backend "http" {{
        address        = "{address}"
        lock_address   = "{address}"
        unlock_address = "{address}"
      }}
    }}

    and in the shell that runs it:

    export TF_HTTP_USERNAME=token TF_HTTP_PASSWORD={token}

""")

_AGAIN = textwrap.dedent("""\
    The service listens on http://127.0.0.1:{port} with the data that is there; Ctrl-C stops it.

    A new token:     .venv/bin/python manage.py issue_token --user operator --name laptop \\
                         --scopes state:read,state:write,state:admin
    A new password:  .venv/bin/python manage.py changepassword operator

""")

if __name__ == "__main__":
    main()
