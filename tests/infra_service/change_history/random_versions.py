"""Random versions of a state, and the changes between two versions by a separate rule.

The rule compares plain JSON, object by object. As in Terraform's documentation, the address names
an object, and the type and id identify it.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from random import Random
from typing import Any, NamedTuple

from tests.states.samples import instance, path, resource

TYPES = ("aws_instance", "null_resource")
PROVIDERS = ('provider["registry.terraform.io/hashicorp/aws"].west', "provider.null", "")
MODULES = (None, "module.a", "module.a[0]", 'module.b["x"]')
VALUES: tuple[Any, ...] = (
    1,
    1.0,
    True,
    False,
    0,
    None,
    "1",
    "",
    [1],
    [True],
    {"k": 1},
    {"k": None},
)
KEYS: tuple[Any, ...] = (0, 2, 10, "0", "a", "a.b", 'say "x"', "${x}")
IDS = ("i-1", "i-2", "i-3", "i-4", "", 7, None)


class Expected(NamedTuple):
    """The columns of a change."""

    action: str
    address: str
    previous_address: str
    type: str
    provider: str
    attributes: tuple[str, ...]


class Author:
    """Resource blocks that change from version to version."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.blocks: list[dict[str, Any]] = []
        self.serial = 0

    def version(self) -> bytes:
        """Make up to eight random changes, and return the document."""
        self.serial += 1
        for _ in range(self.random.choice((0, 1, 2, 3, 5, 8))):
            self._change()
        self.random.shuffle(self.blocks)
        head = {"version": 4, "terraform_version": "1.11.4", "lineage": "l", "outputs": {}}
        return json.dumps({**head, "serial": self.serial, "resources": self.blocks}).encode()

    def _change(self) -> None:
        if len(self.blocks) < 6 or self.random.random() < 0.1:
            self._add()
        elif self.random.random() < 0.4:
            self._change_block(*self.random.sample(self.blocks, 2))
        else:
            self._change_instance(self.random.choice(self.blocks))

    def _change_block(self, block: dict[str, Any], other: dict[str, Any]) -> None:
        pick = self.random.choice
        match self.random.randrange(5):
            case 0:
                self.blocks.remove(block)
            case 1:
                self._rename(block, name=pick("abcd"))
            case 2:
                self._rename(block, module=pick(MODULES))
            case 3:  # two objects exchange their addresses
                block["instances"], other["instances"] = other["instances"], block["instances"]
            case 4:
                block["provider"] = pick(PROVIDERS)

    def _change_instance(self, block: dict[str, Any]) -> None:
        pick, instances = self.random.choice, block["instances"]
        one = pick(instances)
        match self.random.randrange(9):
            case 0:  # another address, as with for_each or count
                one["index_key"] = pick(KEYS)
            case 1:
                one["status"] = pick(("tainted", "", None))
            case 2:
                one["deposed"] = pick(("0a1b2c3d", None))
            case 3:
                instances.append({**self._instance(), "index_key": pick(KEYS)})
            case 4 if len(instances) > 1:
                instances.remove(one)
            case 5:
                one[pick(("private", "schema_version"))] = self.random.randrange(2) or None
            case 6:
                one["attributes"] = {**(one.get("attributes") or {}), "id": pick(IDS)}
            case _:
                values = one.get("attributes") or one.get("attributes_flat") or {}
                values[pick(("id", "size", "tags.a"))] = pick((*IDS, *VALUES))
        keys = {(type(each.get("index_key")), each.get("index_key")): each for each in instances}
        instances[:] = keys.values()

    def _add(self) -> None:
        pick = self.random.choice
        mode = pick(("managed", "managed", "managed", "data"))
        more = {"mode": mode, "type": pick(TYPES), "provider": pick(PROVIDERS)}
        block = resource(pick("abcd"), self._instance(), **more, module=pick(MODULES))
        if not any(_block(block) == _block(each) for each in self.blocks):
            self.blocks.append(block)

    def _instance(self) -> dict[str, Any]:
        pick = self.random.choice
        whole = {"id": pick(IDS), "size": pick(VALUES)}
        values = pick((whole, whole, whole, {"size": pick(VALUES)}, {}, None))
        made = instance(copy.deepcopy(values), *pick(((), (path("size"),))))
        if values and self.random.random() < 0.1:
            made["attributes_flat"] = made.pop("attributes")
        return made

    def _rename(self, block: dict[str, Any], **fields: Any) -> None:
        renamed = {**block, **fields}
        if not any(_block(renamed) == _block(each) for each in self.blocks):
            block.update(fields)


def _block(block: dict[str, Any]) -> str:
    data = "data." if block["mode"] == "data" else ""
    module = f"{block['module']}." if block["module"] else ""
    return f"{module}{data}{block['type']}.{block['name']}"


def _objects(document: bytes) -> dict[str, dict[str, Any]]:
    """Return the current objects of managed resources by address, with their compared values."""
    found = {}
    for block in json.loads(document)["resources"]:
        for one in block["instances"] if block["mode"] == "managed" else ():
            if one.get("deposed"):
                continue
            key = one.get("index_key")
            text = json.dumps(key).replace("${", "$${")
            values = one.get("attributes") or one.get("attributes_flat") or {}
            id_ = values.get("id")
            found[_block(block) + ("" if key is None else f"[{text}]")] = {
                "type": block["type"],
                "provider": block["provider"],
                "id": id_ if isinstance(id_, str) else "",
                "values": values,
                "is_tainted": one.get("status") == "tainted",
                "rest": [one.get("private"), one.get("schema_version") or 0,
                         one["sensitive_attributes"], one.get("status") or ""],
            }  # fmt: skip
    return found


def _canonical(value: Any) -> str:
    """Return the same text for equal JSON: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, dict):
        return str(sorted((name, _canonical(each)) for name, each in value.items()))
    if isinstance(value, list):
        return str([_canonical(each) for each in value])
    return str(int(value)) if isinstance(value, float) else json.dumps(value)


def expected(before: bytes | None, after: bytes) -> Counter[Expected]:
    """Return the changes between two versions."""
    old, new = (_objects(before) if before else {}), _objects(after)
    changes = [_between(address, old[address], new[address]) for address in old if address in new]
    gone = {address: one for address, one in old.items() if address not in new}
    come = {address: one for address, one in new.items() if address not in old}
    origins = {}
    for address, one in come.items():
        same = [[a for a, each in side.items() if _same(one, each)] for side in (gone, come)]
        if [len(each) for each in same] == [1, 1]:
            origins[address] = same[0][0]
    for address, one in come.items():
        origin = origins.get(address, "")
        names = _names(old[origin], one) if origin else ()
        changes.append(_row("MOVED" if origin else "ADDED", address, one, names, origin))
    moved = set(origins.values())
    changes += [_row("REMOVED", a, one) for a, one in gone.items() if a not in moved]
    return Counter(change for change in changes if change is not None)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether both are the same object, by type and id, or without ids by all values."""
    if one["type"] != other["type"] or not one["values"] or not other["values"]:
        return False
    if one["id"] or other["id"]:
        return bool(one["id"] == other["id"])
    return json.dumps(one["values"]) == json.dumps(other["values"])


def _between(address: str, old: dict[str, Any], new: dict[str, Any]) -> Expected | None:
    names = _names(old, new)
    is_same = _canonical(old["values"]) == _canonical(new["values"])
    if is_same and all(old[name] == new[name] for name in ("rest", "provider")):
        return None
    if old["id"] and new["id"] and old["id"] != new["id"]:
        return _row("REPLACED", address, new, names)
    taints = new["is_tainted"] and not old["is_tainted"]
    return _row("TAINTED" if taints else "CHANGED", address, new, names)


def _names(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, ...]:
    return tuple(sorted({
        name.split(".")[0]
        for name in {*old["values"], *new["values"]}
        if _canonical(old["values"].get(name)) != _canonical(new["values"].get(name))
    }))  # fmt: skip


def _row(
    action: str, address: str, one: dict[str, Any], names: tuple[str, ...] = (), origin: str = ""
) -> Expected:
    configuration = one["provider"]
    provider = configuration.split('"')[1] if '"' in configuration else configuration
    return Expected(action, address, origin, one["type"], provider, names)
