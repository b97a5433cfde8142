"""States of format 4, made and recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_RECORDED = Path(__file__).parent / "fixtures"

#: Written by Terraform 1.11.4; see the README beside them.
BEFORE = (_RECORDED / "before.tfstate").read_bytes()
AFTER = (_RECORDED / "after.tfstate").read_bytes()
#: The secret values in them.
PASSWORDS = (b"correct-horse-battery", b"tr0ub4dor-and-three")

ENCRYPTED = (
    b'{"serial":1,"lineage":"x","meta":{},"encrypted_data":"YQ==","encryption_version":"v0"}'
)


def path(*steps: str | int) -> list[dict[str, Any]]:
    """Return a path as ``sensitive_attributes`` has it: ``"a"`` an attribute, ``"[k"`` a key."""
    found: list[dict[str, Any]] = []
    for step in steps:
        if isinstance(step, int):
            found.append({"type": "index", "value": {"value": step, "type": "number"}})
        elif step.startswith("["):
            found.append({"type": "index", "value": {"value": step[1:], "type": "string"}})
        else:
            found.append({"type": "get_attr", "value": step})
    return found


def instance(attributes: Any = None, *paths: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "schema_version": 0,
        "attributes": {} if attributes is None else attributes,
        "sensitive_attributes": list(paths),
        **more,
    }


def resource(name: str, *instances: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "mode": "managed",
        "type": "thing",
        "name": name,
        "provider": 'provider["example.org/x/y"]',
        "instances": list(instances),
        **more,
    }


def state(*resources: dict[str, Any], outputs: Any = None, **more: Any) -> bytes:
    head = {"version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "l"}
    return json.dumps({**head, "outputs": outputs or {}, "resources": resources, **more}).encode()
