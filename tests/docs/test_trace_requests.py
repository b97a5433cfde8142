"""The commands of the how-to guide on traces, with a collector that decodes them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.docs.conftest import readers
from tests.docs.walk import ROOT, Walk
from tests.e2e.backend import Backend
from tests.infra_service.test_trace_context import PARENT, TRACE, TRACEPARENT
from tests.states.conftest import document
from tests.support.otlp import collecting
from tests.support.server import LiveServer, running
from tests.support.waiting import wait_until

PAGE = ROOT / "docs" / "how-to" / "trace-requests.md"


def test_trace_requests(place: Path) -> None:
    server = LiveServer(place, WEB_WORKERS="1")
    (settings,) = re.findall(r"^```ini\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with collecting() as collector, running(server):
        token = server.token("state:read", "state:write", "audit:read")
        assert Backend(server, token).get().status == 404

        def restart() -> str:
            """Restart with the variables of the page; then push with terraform in its trace."""
            server.stop()
            server.environment |= dict(line.split("=", 1) for line in settings.splitlines())
            server.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
            server.start()
            pushed = Backend(server, token).push(document(1), traceparent=TRACEPARENT)
            assert pushed.status == 200
            return ""

        # pip fails unless each package is installed in the listed version.
        pip = {"PIP_NO_INDEX": "1", "PIP_ROOT_USER_ACTION": "ignore"}
        words = {
            ".venv/bin/pip": f"{sys.executable} -m pip",
            "requirements-otel.txt": f"{ROOT}/requirements-otel.txt",
        }
        reader = {**readers(place, server.environment), **pip}
        reader |= {"BASE_URL": server.url, "TOKEN": token}
        walk = Walk(place, reader, words, {"systemctl restart 'infra-service@*'": restart})
        assert walk.through(PAGE) == 4

        wait_until(lambda: collector.named("GET whoami"))
        (push,) = collector.named("POST state-backend")
        (whoami,) = collector.named("GET whoami")

    for span in (push, whoami):
        assert (span.trace_id, span.parent_id) == (TRACE, PARENT)
        assert span.resource["service.name"] == "infra-service"
        assert span.resource["deployment.environment.name"] == "production"
