"""``make run``: set up and start the service, or restart it with the existing data."""

from __future__ import annotations

import argparse
import base64
import io
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path
from typing import TextIO, cast

from infra_service.lib.commandline.error_output import ErrorOutput
from infra_service.lib.commandline.private_files import sync

_PORT = 8000
_ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Prepare secrets, database, operator and token, and replace this process with gunicorn."""
    sys.stderr = cast("TextIO", ErrorOutput(sys.stderr))
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--port", default=str(_PORT))
    port = _usable_port(parser.parse_args().port)
    os.umask(0o077)  # secrets and database are for the owner only
    _write_secrets(Path(os.environ.get("VAR_DIR", _ROOT / "var")))
    os.environ["DJANGO_SETTINGS_MODULE"] = "infra_service.settings"
    _prepare_database()
    from django.db import transaction  # noqa: PLC0415 - after set-up

    with transaction.atomic():  # if the output fails, the next run prints the first secrets
        _introduce(port)
        sys.stdout.flush()
    _start_workers("index_states", "deliver_events")
    os.environ["BIND"] = f"127.0.0.1:{port}"
    arguments = ["gunicorn", "-c", "python:infra_service.gunicorn", "infra_service.wsgi"]
    os.execv(sys.executable, [sys.executable, "-m", *arguments])  # noqa: S606 - our own server


def _usable_port(given: str) -> int:
    """Return the port if it is valid and free.

    gunicorn would share a used port (SO_REUSEPORT), and the kernel would distribute connections
    between both services. Requests for a state would then alternate between two databases.
    """
    if not (given.isascii() and given.isdecimal() and 0 < int(given[:6]) < 2**16):
        sys.exit(f"PORT={given} is not a port (1 to 65535). Example: PORT=8001 make run")
    port = int(given)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # TIME_WAIT is not a listener
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            other = _PORT + 1 if port == _PORT else _PORT
            sys.exit(f"Port {port} cannot be used ({error.strerror}): PORT={other} make run")
    return port


def _write_secrets(var: Path) -> None:
    """Generate the secrets once, readable only by the owner. The environment overrides them."""
    var.mkdir(parents=True, exist_ok=True)
    path = var / "service.env"
    if path.exists():
        return
    lines = (
        f"SECRET_KEY={secrets.token_urlsafe(50)}",
        f"STATE_ENCRYPTION_KEYS={base64.b64encode(secrets.token_bytes(32)).decode()}",
    )
    # Atomic and durable, even after a power cut: a lost key would make states unreadable.
    draft = var / "service.env.new"
    with draft.open("wb") as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
        sync(file)
    draft.rename(path)
    directory = os.open(var, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def _prepare_database() -> None:
    import django  # noqa: PLC0415 - the secrets must exist before the settings are read
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 - the same
    from django.core.management import CommandError, call_command  # noqa: PLC0415 - the same
    from django.db import Error  # noqa: PLC0415 - the same

    try:
        django.setup()
        call_command("migrate", verbosity=0, skip_checks=False)
    except (CommandError, ImproperlyConfigured) as error:  # such as a database that is too old
        sys.exit(str(error))
    except Error as error:
        from infra_service.lib.database.failures import explanation_of  # noqa: PLC0415 - rare

        if (explanation := explanation_of(error)) is None:
            raise
        sys.exit(explanation)
    call_command("setup_groups", stdout=io.StringIO())


def _start_workers(*names: str) -> None:
    """Start background commands that end with the server, even if the server is killed.

    The commands read from a pipe that only the server and its workers keep open.
    """
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # noqa: FBT003 - its signature
    subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "infra_service.quickstart_workers", *names],
        cwd=_ROOT,
        stdin=reading,
        stdout=subprocess.DEVNULL,
        # Ctrl-C is for the service.
        start_new_session=True,
    )
    os.close(reading)


def _introduce(port: int) -> None:
    """Print the first steps, and on the first start also the password and the token."""
    from apikeys.actions import create_first_operator  # noqa: PLC0415 - after set-up
    from apikeys.actors import Actor  # noqa: PLC0415 - after set-up
    from apikeys.scopes import Scope  # noqa: PLC0415 - after set-up
    from states.addresses import backend_block, path_of  # noqa: PLC0415 - after set-up
    from states.models import State  # noqa: PLC0415 - after set-up

    host = f"http://127.0.0.1:{port}"
    made = create_first_operator(Actor.of_command("make run"))
    if made is None:
        secrets_ = _HOW_TO_GET_MORE.format(scopes=",".join(Scope))
    else:
        secrets_ = _FIRST_SECRETS.format(port=port, **made._asdict())
    states = State.objects.visible().select_related("component__application", "environment")
    latest = states.order_by("-updated_at", "-pk")[:_SHOWN_STATES]
    shown = [f"  {state}\n    {host}{path_of(state)}\n" for state in latest]
    if shown:
        block = _STATES.format(states="".join(shown))
    else:
        block = _BACKEND_BLOCK.format(
            block=backend_block(f"{host}/api/v1/state/at/network/production")
        )
    sys.stdout.write(_GREETING.format(port=port, secrets=secrets_, block=block))


_GREETING = """\
The service listens on http://127.0.0.1:{port}; Ctrl-C stops it.

{secrets}
{block}
"""

_BACKEND_BLOCK = """\
A backend block for any Terraform configuration. Replace the component and environment with your
own; the first use registers them.

{block}"""

_SHOWN_STATES = 5
_STATES = """\
Recently written states, and their addresses for a backend block:
{states}"""

_FIRST_SECRETS = """\
Shown only once:
  export TF_HTTP_USERNAME=token TF_HTTP_PASSWORD={token}
  http://127.0.0.1:{port}/admin/  user operator, password {password}
"""

_HOW_TO_GET_MORE = """\
Existing data is kept. The first token and password still work. To create more:
  .venv/bin/python manage.py issue_token --user operator --name again \\
    --scopes {scopes}
  .venv/bin/python manage.py changepassword operator
"""

if __name__ == "__main__":
    main()
