"""Hooks of schemathesis for constraints that JSON Schema cannot express.

The hooks adjust generated valid requests, so that they pass the validation of the service. Invalid
requests are sent unchanged.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import re
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import schemathesis
import yaml
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import RejectedPositiveData

OWN_IDS = os.environ["FUZZ_OWN_IDS"].split(",")
# Existing states, and ids with which states are created. There are few of them, so that requests
# affect the same objects.
STATES = os.environ["FUZZ_STATES"].split(",")
PLACES = [f"01941f29-7c00-7d82-b082-00000000000{digit}" for digit in range(3)]
#: Literals of JSON, as they appear in a path.
_NOT_TEXT = {"0", "true", "false", "null"}
WORDS = ["web", "cache", "network", "production", "100%", "o'hara", "it\\s", "naïve", "_"]
#: Reasons for rejections that JSON Schema cannot express.
_NOT_IN_SCHEMAS = {"UNKNOWN_APPLICATION", "BLANK", "INVISIBLE_CHARACTER"}
_BOUND = ("component", "environment", "application")


@schemathesis.deserializer("application/vnd.oai.openapi")
def read_openapi(_context: Any, response: Any) -> Any:
    """Return the OpenAPI document of the service."""
    # The C parser is faster: the document has 12,000 lines and is read repeatedly.
    return yaml.load(response.content, Loader=yaml.CSafeLoader)


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Adjust a request before schemathesis sends it."""
    path = case.path_parameters or {}
    if path.get("id") in OWN_IDS:
        # Revoking the key or token of the run would end the run.
        path["id"] = f"{path['id'][:4]}0"
    # A repeated valid key with a different body causes a 422, which other tests cover.
    if re.fullmatch(r"[ -~]{1,255}", (case.headers or {}).get("Idempotency-Key") or ""):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    if case.meta is not None and case.meta.generation.mode.is_positive:
        if case.meta.phase.name == TestPhase.FUZZING:
            _let_meet(path)
        _make_right(case)


def _let_meet(path: dict[str, Any]) -> None:
    """Replace most unknown ids with ids that may exist."""
    pools = {"state_id": STATES, "component_id": PLACES, "environment_id": PLACES[:1]}
    for name, pool in pools.items():
        if name in path:
            path[name] = random.Random(str(path[name])).choice([path[name], *pool])
    if "number" in path:
        path["number"] = 1 + int(path["number"]) % 3


def _make_right(case: Any) -> None:
    query, body = case.query or {}, case.body
    # Page tokens are signed and cannot be generated.
    query.pop("page_token", None)
    _make_time_right(query)
    if "filter" in query:
        (parameter,) = [p for p in case.operation.query if p.name == "filter"]
        query["filter"] = _filter(parameter.definition["x-filter-fields"], query["filter"])
    if not isinstance(body, dict):
        query.pop("update_mask", None)
        return
    case.body = body = _whole(body)
    if "update_mask" in {*body, *query}:
        query.pop("update_mask", None)
        body["update_mask"] = list(next((v for v in body.values() if isinstance(v, dict)), {}))
    if "reported_at" in body:
        _make_report_right(body)
    if isinstance(body.get("webhook"), dict):
        _make_webhook_right(body["webhook"])
    if body.get("expected_until") is not None:
        body["expected_until"] = _soon()
    for wrapper in ("api_key", "access_token", "webhook"):
        if isinstance(body.get(wrapper), dict):
            _make_credential_right(body[wrapper])
    if "grace_period" in body:
        body["grace_period"] = _seconds(body["grace_period"], 7 * 86400)


def _make_webhook_right(webhook: dict[str, Any]) -> None:
    right = {"url": "https://hooks.example.com/infra", "filter": "field['cluster'] = 'prod'"}
    webhook |= {name: right[name] for name in right.keys() & webhook.keys()}
    if webhook.get("format") == "ocsf":  # allows only one event type
        webhook["format"] = "standard"


def _make_time_right(query: dict[str, Any]) -> None:
    """Set a valid period: the last 24 hours."""
    now = dt.datetime.now(dt.UTC)
    for name, moment in (("since", now - dt.timedelta(days=1)), ("until", now)):
        if name in query:
            query[name] = moment.isoformat()


def _whole(value: Any) -> Any:
    """Convert 5.0 to 5: 5.0 is an integer in JSON Schema, but not in all parts of the service."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    return [_whole(part) for part in value] if isinstance(value, list) else value


def _filter(fields: dict[str, Any], seed: str) -> str:
    """Return a random filter with these fields, which is the same for the same seed."""
    rng = random.Random(seed)
    first, *others = rng.choices(list(fields.items()), k=rng.randint(1, 3))
    text = _term(rng, *first)
    for term in (_term(rng, *other) for other in others):
        text = f"({text}) {rng.choice(['AND', 'OR'])} {rng.choice(['', 'NOT '])}{term}"
    return text


def _term(rng: random.Random, written: str, about: dict[str, Any]) -> str:
    operator = rng.choice(about["operators"])
    field = written.replace("<key>", "team") if "[" in written else f"field['{written}']"
    if operator.startswith("IS") or operator == "EXISTS":
        return f"{field} {operator}"
    if operator == "BETWEEN":
        return f"{field} BETWEEN {_value(rng, about)} AND {_value(rng, about)}"
    if operator.endswith("IN"):
        return f"{field} {operator} ({_value(rng, about)}, {_value(rng, about)})"
    return f"{field} {operator} {_value(rng, about)}"


def _value(rng: random.Random, about: dict[str, Any]) -> str:
    match about["type"]:
        case "enum":
            text = rng.choice(about["values"])
        case "integer":
            return str(rng.choice([0, 1, -1, 2**31, 2**63 - 1]))
        case "boolean":
            return rng.choice(["true", "false"])
        case "uuid":
            text = f"01941f29-7c00-7d82-b082-{rng.getrandbits(48):012x}"
        case "version":
            text = rng.choice(["5", "5.31.0-beta.1", "0.1"])
        case "timestamp":
            text = f"20{rng.randint(10, 99)}-01-31T12:00:00Z"
        case _:
            text = rng.choice(WORDS)
    return "'" + text.replace("'", "''") + "'"


def _make_report_right(body: dict[str, Any]) -> None:
    """Make a report current and consistent, with each workload once."""
    body["reported_at"] = dt.datetime.now(dt.UTC).isoformat()
    places: set[tuple[str, str, str]] = set()
    for name in {"workloads", "upserts", "deletes"} & body.keys():
        first = {(i["namespace"], i["name"], i["kind"]): i for i in reversed(body[name])}
        body[name] = [item for place, item in first.items() if place not in places]
        places |= first.keys()
        for item in body[name]:
            item.update(_without_repeats(item))


def _without_repeats(item: dict[str, Any]) -> dict[str, Any]:
    """Return replacements for fields that contradict other fields of an item."""
    if item.get("health_status") is None:
        hidden: dict[str, Any] = {"status_reason": ""} if item.get("status_reason") else {}
        if item.get("pods") is not None and item.get("replicas_desired") is None:
            hidden["replicas_desired"] = 1
        return hidden
    return {"pods": None} if item.get("pods") is not None else {}


def _soon() -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(hours=6)).isoformat()


def _make_credential_right(fields: dict[str, Any]) -> None:
    """Set a single future expiry, valid networks and a valid binding of a credential."""
    if fields.get("allowed_networks"):
        fields["allowed_networks"] = ["10.0.0.0/8"]
    if fields.get("expires_at") is not None:
        fields["expires_at"] = _soon()
    if "ttl" in fields:
        fields["ttl"] = _seconds(fields["ttl"], 12 * 3600, least=1)
        fields.pop("expires_at", None)
    binding = fields.get("binding") or {}
    if binding.get("cluster_id") is not None:
        for kind in _BOUND:
            binding.pop(f"{kind}_ids", None)
    for kind in _BOUND:  # names that do not exist
        binding.pop(f"{kind}s", None)


def _seconds(given: Any, most: int, least: int = 0) -> Any:
    """Return a duration within the bounds. Only durations as text are changed."""
    if not isinstance(given, str):
        return given
    whole = min(max(int(float(given.removesuffix("s"))), least), most)
    return f"{whole}s"


@schemathesis.hook
def filter_failure(_context: Any, failure: Any, _case: Any, response: Any) -> bool:
    """Return whether a failure that schemathesis reports is a real failure.

    The service may reject a valid request because of the state of a resource, or because it refers
    to a missing resource. Python regards more control characters as space than a schema does. An
    empty parameter counts as absent, like an empty form field. In a path, a number is valid as a
    slug.
    """
    if isinstance(failure, RejectedPositiveData):
        error = response.json()["error"]
        if isinstance(error, str):  # OAuth's format: a schema cannot generate signed tokens
            is_repeated = "must not be repeated" in response.json()["error_description"]
            return error != "invalid_grant" and not is_repeated
        if error["details"][0]["reason"] == "INVALID_FILE":  # a Terraform file, too
            return False
        violations = [v for d in error["details"] for v in d.get("field_violations", [])]
        reasons = {v["reason"] for v in violations}
        is_invalid = not reasons or bool(reasons - _NOT_IN_SCHEMAS)
        replaces = "does not replace a state" in error["message"]
        return error["status"] != "FAILED_PRECONDITION" and is_invalid and not replaces
    if isinstance(failure, AcceptedNegativeData):
        address = urlsplit(response.request.url)
        if _NOT_TEXT.intersection(address.path.partition("/state/at/")[2].split("/")):
            return False
        sent = parse_qs(address.query, keep_blank_values=True)
        return [""] not in map(sent.get, ("page_size", "order_by", "against"))
    return True
