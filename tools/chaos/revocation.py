"""Check that a revocation is effective on every instance immediately."""

from __future__ import annotations

import json
import uuid

from tests.support.server import LiveServer
from tools.chaos.service import Front

_JSON = {"Content-Type": "application/json"}
_SEED = ("seed_apikeys", "--user", "operator", "--scopes", "apikey:write,state:read", "--json")


def broken_promises(front: Front, rounds: int = 4) -> list[str]:
    """Revoke tokens on one instance, and immediately test them on two instances."""
    seeded = json.loads(front.manage(*_SEED, "--name", f"chaos {uuid.uuid4()}"))
    key = seeded["api_keys"][0]["secret"]
    wrong = []
    for number in range(rounds):
        here = front.instances[number % len(front.instances)]
        there = front.instances[(number + 1) % len(front.instances)]
        body = json.dumps({"access_token": {"name": "short", "scopes": ["state:read"]}}).encode()
        answer = here.request("POST", "/v1/access-tokens", body, token=key, headers=_JSON)
        if answer.status != 201:
            wrong.append(f"minting a token failed: {answer.status} {answer.body[:300]!r}")
            continue
        minted = answer.json()
        if [_status(one, minted["secret"]) for one in (here, there)] != [200, 200]:
            wrong.append("a new token was rejected")
        revoke = f"/v1/access-tokens/{minted['access_token']['id']}:revoke"
        if here.request("POST", revoke, b"{}", token=key, headers=_JSON).status != 200:
            wrong.append("revoking a token failed")
        statuses = [_status(one, minted["secret"]) for one in (there, here)]
        if statuses != [401, 401]:
            wrong.append(f"the responses to a revoked token had the statuses {statuses}")
    return wrong


def _status(instance: LiveServer, secret: str) -> int:
    return instance.request("GET", "/api/v1/states", token=secret).status
