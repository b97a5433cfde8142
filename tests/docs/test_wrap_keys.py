"""The how-to guide of wrapped keys, walked with a transit server."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

from tests.docs.conftest import manage_py, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e.backend import Backend
from tests.states.conftest import document
from tests.support.server import LiveServer, running
from tests.support.transit import Transit
from tests.support.transit import running as running_transit


def test_wrap_keys(place: Path) -> None:
    server = LiveServer(place, WEB_WORKERS="1")
    key = server.environment.pop("STATE_ENCRYPTION_KEYS")
    settings, token_file = place / "service.env", place / "vault-token"
    # The documents of this service use the first of two keys.
    older = base64.b64encode(secrets.token_bytes(32)).decode()
    settings.write_text(f"STATE_ENCRYPTION_KEYS={key},{older}\n")
    transit = Transit()
    transit.keys.clear()
    with running_transit(transit), running(server):
        token_file.write_text(transit.token)
        backend = Backend(server, server.token("state:read", "state:write"))
        assert backend.push(document(1)).status == 200

        def restart() -> str:
            server.stop()
            server.environment |= dict(
                line.split("=", 1) for line in settings.read_text().splitlines()
            )
            server.start()
            return ""

        reader = {**readers(place, server.environment), "ADMIN_TOKEN": transit.token}
        words = {
            "/etc/infra-service.env": str(settings),
            "/run/infra/vault-token": str(token_file),
            **manage_py(),
        }
        systemctl = "systemctl restart 'infra-service@*' infra-index infra-webhooks"
        walk = Walk(place, {**reader, "VAULT_ADDR": transit.url}, words, {systemctl: restart})
        assert walk.through(ROOT / "docs/how-to/wrap-keys.md")

        assert backend.get().body == document(1)
        assert not [path for path in place.glob("service.env*") if key in path.read_text()]
        # Two keys, by the user, by the check and by gunicorn.
        assert transit.requests == 7
