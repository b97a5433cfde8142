"""Set up access to the service: a trust policy for pipelines, an admin session and a webhook."""

from __future__ import annotations

import http.client
import json
import re
import urllib.parse
from typing import Final

from tests.infra_service.webhooks.receiver import Receiver
from tests.support.issuer import AUDIENCE, CONDITIONS, IssuerServer
from tests.support.server import LiveServer
from tools.bench.day.clients import JSON

_TRUST: Final = """
[[issuers]]
name = "github"
kind = "GITHUB"
url = "{url}"
audience = "{audience}"
algorithms = ["ES256"]
ca_file = "ca.pem"

[[trust_policies]]
name = "pipelines"
issuer = "github"
owner = "pipelines"
scopes = ["state:read", "state:write"]
conditions = [{conditions}]
"""


def trust(server: LiveServer, issuer: IssuerServer) -> str:
    """Create a trust policy for the issuer's pipelines, and return its id."""
    (server.directory / "ca.pem").write_text(issuer.ca)
    conditions = ", ".join(
        "{" + ", ".join(f"{name} = {json.dumps(v)}" for name, v in condition.items()) + "}"
        for condition in CONDITIONS["GITHUB"]
    )
    file = server.directory / "trust.toml"
    file.write_text(_TRUST.format(url=issuer.url, audience=AUDIENCE, conditions=conditions))
    made = server.manage("trust", "--file", str(file), "--create-users", "--json")
    policy: str = json.loads(made)["trust_policies"][0]["id"]
    return policy


def log_in(server: LiveServer) -> str:
    """Log in through the admin's form, and return the cookies."""
    path = "/admin/login/"
    form = server.request("GET", path)
    csrf = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.body.decode())
    cookie = form.headers["Set-Cookie"].partition(";")[0]
    assert csrf
    fields = {
        "username": "operator", "csrfmiddlewaretoken": csrf[1],
        "password": server.environment["DJANGO_SUPERUSER_PASSWORD"],
    }  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", path, urllib.parse.urlencode(fields), headers)
    answer = connection.getresponse()
    assert answer.status == 302, answer.read()
    cookies = [text.partition(";")[0] for text in answer.headers.get_all("Set-Cookie") or ()]
    connection.close()
    return "; ".join(cookies)


def subscribe(server: LiveServer, receiver: Receiver) -> None:
    """Create a webhook that delivers each push and each health change to the receiver."""
    types = ["state.push", "workload.health_changed"]
    webhook = {"name": "day", "url": receiver.url, "event_types": types}
    answer = server.request(
        "POST", "/api/v1/webhooks", json.dumps({"webhook": webhook}).encode(),
        token=server.token("webhook:write", "state:read", "cluster:read"),
        headers=JSON,
    )  # fmt: skip
    assert answer.status == 201, answer.body
