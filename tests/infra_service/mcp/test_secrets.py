"""Secrets that generated states mark never appear in an answer of a tool."""

from __future__ import annotations

import json
import os
import random
import string
from typing import Any

import pytest

from infra_service.mcp.tools import TOOLS
from tests.conftest import ApiClient, ClientWith
from tests.infra_service.mcp.conftest import READING, Mcp
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import instance, path, resource, state

#: Of the gate; 10,000 were run once: ``MCP_SECRET_CALLS=10000``.
CALLS = int(os.environ.get("MCP_SECRET_CALLS", "150"))
STATES = max(4, CALLS // 60)


class Author:
    """An author of states with secrets in marked attributes and outputs, and copies of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.secrets: list[str] = []

    def secret(self) -> str:
        alphabet = string.ascii_letters + string.digits
        found = "".join(self.random.choices(alphabet, k=self.random.randint(20, 40)))
        self.secrets.append(found)
        return found

    def value(self, secret: str) -> Any:
        """Return a value with a copy of the secret."""
        return self.random.choice(
            [
                secret,
                f"postgres://app:{secret}@db/shop",
                [secret, "public"],
                {"key": {"in": secret}},
                json.dumps({"password": secret}),
            ]
        )

    def document(self, number: int) -> bytes:
        first, second, third = (self.secret() for _ in range(3))
        things = [
            resource("db", instance({"id": f"db-{number}", "all": first}, path("all"))),
            resource("copy", instance({"id": f"copy-{number}", "text": self.value(first)})),
            resource("pass", instance({"result": second}, path("result")), type="random_password"),
            resource("web", instance({"id": f"w-{number}", "tags": {"n": "public"}})),
        ]
        outputs = {
            "marked": {"value": third, "type": "dynamic", "sensitive": True},
            "copy": {"value": self.value(second), "type": "dynamic"},
            "again": {"value": self.value(third), "type": "dynamic"},
            "public": {"value": f"public-{number}", "type": "string"},
        }
        return state(*things, outputs=outputs)


@pytest.mark.slow
def test_no_answer_has_a_marked_value(client_with: ClientWith, writer: ApiClient) -> None:
    author, ids = Author(47), []
    for number in range(STATES):
        backend = Backend(writer)
        assert backend.push(author.document(number)).status_code == 200
        ids.append(str(backend.record.pk))
    index()
    # Without the setting, state:secrets shows no more.
    tokens = [Mcp(client_with(*READING)), Mcp(client_with(*READING, "state:secrets"))]
    chosen, read = random.Random(4), 0

    def arguments(name: str) -> dict[str, Any]:
        number = chosen.randrange(STATES)
        identifier = chosen.choice([f"db-{number}", f"w-{number}", chosen.choice(author.secrets)])
        return {
            "find_resource": {"identifier": identifier},
            "list_resources": chosen.choice([{}, {"type": "thing"}, {"type": "random_password"}]),
            "list_outputs": {"state_id": ids[number]},
            "get_state": {"state_id": ids[number]},
            "list_dependencies": {"state_id": ids[number]},
            "find_managing_states": {
                "workloads": [{"cluster_id": ids[number], "workload_id": ids[number]}]
            },
        }.get(name, {})

    names = [*TOOLS, "list_outputs", "list_outputs", "find_resource"]
    for _ in range(CALLS):
        name = chosen.choice(names)
        given = {"name": name, "arguments": arguments(name)}
        response = chosen.choice(tokens).send("tools/call", given)
        text = response.content.decode()
        read += "public-" in text
        assert response.status_code == 200
        assert [secret for secret in author.secrets if secret in text] == [], (given, text)
    assert read > CALLS / 20
