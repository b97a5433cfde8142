"""The resources of a demo state, which change with each apply."""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra_service.demo.seeded_random import SeededRandom

_PROVIDER: Final = 'provider["registry.terraform.io/hashicorp/aws"]'
_BUILT_IN: Final = 'provider["terraform.io/builtin/terraform"]'
_REGION: Final = "eu-central-1"
#: Placeholder for a random sensitive value.
_SECRET: Final = object()
_ZONES: Final = tuple(f"{_REGION}{zone}" for zone in "abc")
#: Resource types per part, with the possible values of each attribute.
_TYPES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "network": {
        "aws_subnet": {
            "cidr_block": tuple(f"10.20.{number}.0/24" for number in range(32)),
            "availability_zone": _ZONES,
            "map_public_ip_on_launch": (False, True),
        },
        "aws_security_group": {"description": ("web", "workers", "private", "bastion")},
        "aws_nat_gateway": {"connectivity_type": ("public", "private")},
    },
    "database": {
        "aws_db_instance": {
            "engine_version": ("15.8", "16.4", "16.6", "17.2"),
            "instance_class": ("db.t4g.medium", "db.r6g.large", "db.r6g.xlarge"),
            "allocated_storage": (50, 100, 200, 500),
            "password": _SECRET,
        },
        "aws_db_parameter_group": {"family": ("postgres15", "postgres16", "postgres17")},
    },
    "cluster": {
        "aws_eks_cluster": {"version": ("1.29", "1.30", "1.31", "1.32")},
        "aws_eks_node_group": {
            "instance_types": (["m6i.large"], ["m6i.xlarge"], ["m7g.xlarge"]),
            "desired_size": (2, 3, 4, 6, 9),
        },
    },
    "dns": {
        "aws_route53_record": {
            "ttl": (60, 300, 3600),
            "type": ("A", "AAAA", "CNAME"),
            "records": (["192.0.2.10"], ["192.0.2.10", "192.0.2.11"], ["192.0.2.40"]),
        },
        "aws_route53_zone": {"comment": ("public", "internal")},
    },
    "cache": {
        "aws_elasticache_replication_group": {
            "node_type": ("cache.t4g.small", "cache.r7g.large"),
            "num_cache_clusters": (1, 2, 3),
            "auth_token": _SECRET,
        },
        "aws_elasticache_parameter_group": {"family": ("redis7", "valkey8")},
    },
    "queue": {
        "aws_sqs_queue": {
            "visibility_timeout_seconds": (30, 60, 300),
            "message_retention_seconds": (86400, 345600, 1209600),
        },
        "aws_sns_topic": {"fifo_topic": (False, True)},
    },
    "iam": {
        "aws_iam_role": {"max_session_duration": (3600, 7200, 43200)},
        "aws_iam_access_key": {"status": ("Active", "Inactive"), "secret": _SECRET},
    },
    "storage": {
        "aws_s3_bucket": {"force_destroy": (False, True), "object_lock_enabled": (False, True)},
        "aws_s3_bucket_versioning": {"status": ("Enabled", "Suspended")},
    },
    "cdn": {
        "aws_cloudfront_distribution": {
            "price_class": ("PriceClass_100", "PriceClass_200", "PriceClass_All"),
            "http_version": ("http2", "http2and3"),
        },
        "aws_acm_certificate": {"validation_method": ("DNS", "EMAIL")},
    },
}
PARTS: Final = tuple(_TYPES)
_NAMES: Final = (
    "main", "primary", "internal", "public", "worker", "reports", "archive", "edge", "audit",
    "blue", "green", "batch",
)  # fmt: skip
_FIRST: Final = range(3, 9)
_FEWEST: Final = 2


class Stack:
    """The resources of a state. Each ``change`` is an apply, after which ``document`` is pushed."""

    def __init__(
        self, part: str, environment: str, rng: SeededRandom, reads: Mapping[str, str]
    ) -> None:
        """Create the first resources. ``reads`` maps parts to the URLs of other states."""
        self._types, self._rng = _TYPES[part], rng
        self._part, self._environment, self._reads = part, environment, reads
        self._serial = 1
        self._lineage = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        self._resources: dict[tuple[str, str], dict[str, Any]] = {}
        for _ in range(rng.choice(_FIRST)):
            self._add()

    def change(self) -> None:
        """Add, remove or alter one to three resources."""
        self._serial += 1
        before = copy.deepcopy(self._resources)
        for _ in range(self._rng.choice((1, 1, 2, 3))):
            self._rng.pick({self._alter: 6, self._add: 3, self._remove: 1})()
        if self._resources == before:  # such as a resource that was added and removed again
            self._alter()

    def document(self) -> bytes:
        """Return the state in Terraform's format."""
        state = {
            "version": 4,
            "terraform_version": "1.11.4",
            "serial": self._serial,
            "lineage": self._lineage,
            "outputs": self._outputs(),
            "resources": [
                *(_read(*one) for one in self._reads.items()),
                *(self._resource(*key) for key in sorted(self._resources)),
            ],
            "check_results": None,
        }
        return msgspec.json.format(msgspec.json.encode(state), indent=2)

    def _add(self) -> None:
        kind = self._rng.choice(list(self._types))
        name = self._rng.choice(_NAMES)
        drawn = self._rng.getrandbits(64)
        self._resources.setdefault(
            (kind, name),
            {
                "id": f"{kind.removeprefix('aws_').replace('_', '-')}-{drawn:016x}",
                **{attribute: self._draw(kind, attribute) for attribute in self._types[kind]},
                "tags": {"environment": self._environment, "part": self._part},
            },
        )

    def _remove(self) -> None:
        if len(self._resources) > _FEWEST:
            del self._resources[self._rng.choice(list(self._resources))]

    def _alter(self) -> None:
        key = self._rng.choice(list(self._resources))
        attribute = self._rng.choice(list(self._types[key[0]]))
        while (value := self._draw(key[0], attribute)) == self._resources[key][attribute]:
            pass
        self._resources[key][attribute] = value

    def _draw(self, kind: str, attribute: str) -> Any:
        choices = self._types[kind][attribute]
        if choices is _SECRET:
            return f"{self._rng.getrandbits(96):024x}"
        return self._rng.choice(choices)

    def _outputs(self) -> dict[str, Any]:
        kind, name = min(self._resources)
        address = f"{name}.{self._part}.{self._environment}.example.com"
        outputs: dict[str, Any] = {
            "endpoint": {"value": address, "type": "string"},
            "resources": {"value": len(self._resources), "type": "number"},
        }
        for attribute in self._secrets(kind):
            value = self._resources[kind, name][attribute]
            outputs[attribute] = {"value": value, "type": "string", "sensitive": True}
        return outputs

    def _secrets(self, kind: str) -> list[str]:
        return [name for name, choices in self._types[kind].items() if choices is _SECRET]

    def _resource(self, kind: str, name: str) -> dict[str, Any]:
        marks = [[{"type": "get_attr", "value": secret}] for secret in self._secrets(kind)]
        attributes = self._resources[kind, name]
        instance = {"schema_version": 0, "attributes": attributes, "sensitive_attributes": marks}
        return {
            "mode": "managed",
            "type": kind,
            "name": name,
            "provider": _PROVIDER,
            "instances": [instance],
        }


def _read(part: str, address: str) -> dict[str, Any]:
    """Return the data source that reads the outputs of another state."""
    attributes = {
        "backend": "http",
        "config": {"value": {"address": address}, "type": ["object", {"address": "string"}]},
        "workspace": None,
    }
    return {
        "mode": "data",
        "type": "terraform_remote_state",
        "name": part,
        "provider": _BUILT_IN,
        "instances": [{"schema_version": 0, "attributes": attributes, "sensitive_attributes": []}],
    }
