"""The units with a socket under a real systemd: a start during an outage of the database."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.deployment.systemd import booted
from tests.deployment.units import HOW_TO
from tests.support.postgres import free_port
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

#: The commands of the units, replaced by commands that need no installation and no database.
COMMANDS: Final = {
    "infra-migrate.service": "/bin/sh -c 'sleep 0.2; test -e /run/database'",
    "infra-service@.service": "/usr/bin/python3 /srv/service.py",
}
SERVICE: Final = """
import socket
listening = socket.socket(fileno=3)
while True:
    connection, _ = listening.accept()
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    connection.close()
"""


def unit(name: str) -> str:
    text = (HOW_TO / name).read_text()
    if name not in COMMANDS:
        return text
    # The replacements need no installation and no settings.
    installed = r"(?m)^(LoadCredential|EnvironmentFile|WorkingDirectory|ExecStart)=.*\n"
    text = re.sub(installed, "", text)
    return text.replace("[Service]\n", f"[Service]\nExecStart={COMMANDS[name]}\n")


def test_the_service_starts_after_an_outage_of_the_database(tmp_path: Path) -> None:
    port = free_port()
    with booted(tmp_path, {}) as system:
        for name in ("infra-service@.service", "infra-migrate.service", "infra-port@.socket"):
            system.write(f"/etc/systemd/system/{name}", unit(name))
        system.write("/srv/service.py", SERVICE)
        system.run("useradd --system infra; chmod -R a+rX /srv; systemctl daemon-reload")
        system.run(f"systemctl start infra-port@{port}.socket")
        request = f"curl -s --max-time 5 http://127.0.0.1:{port}/ || true"

        assert system.run(request) == ""
        system.run("touch /run/database")

        wait_until(lambda: system.run(request) == "ok")
