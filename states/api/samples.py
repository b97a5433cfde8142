"""Examples of states and related objects for the OpenAPI document."""

from typing import Any, Final

import msgspec

from states.document.marked_places import MARKED

LOCK_INFO: Final = {
    "ID": "a2bc019d-5f56-4551-8ca0-ee62e8da16b0",
    "Operation": "OperationTypeApply",
    "Info": "",
    "Who": "ada@laptop",
    "Version": "1.11.4",
    "Created": "2026-11-21T06:50:11.123456789Z",
    "Path": "",
}
APPLICATION: Final[dict[str, Any]] = {
    "id": "01941f29-7c00-7d82-b082-532b629f6fbe",
    "name": "shop",
    "slug": "shop",
    "created_at": "2025-01-01T00:00:00.000000Z",
    "updated_at": "2025-01-01T00:00:00.000000Z",
}
COMPONENT: Final[dict[str, Any]] = {
    "id": "01941f29-7c00-71a8-aaea-632a5a6cd310",
    "name": "network",
    "slug": "network",
    "application_id": None,
    "created_at": "2025-01-01T00:00:00.000000Z",
    "updated_at": "2025-01-08T17:48:04.444227Z",
}
ENVIRONMENT: Final[dict[str, Any]] = {
    "id": "01941f29-7c00-7ae7-af9b-8ab2c1fe85dd",
    "name": "production",
    "slug": "production",
    "require_lock": True,
    "created_at": "2025-01-01T00:00:00.000000Z",
    "updated_at": "2025-01-01T00:00:00.000000Z",
}
UNLOCKED_STATE: Final[dict[str, Any]] = {
    "id": "01941f29-7c00-719e-8289-09881617432c",
    "component_id": COMPONENT["id"],
    "component_name": COMPONENT["name"],
    "component_slug": COMPONENT["slug"],
    "application_slug": None,
    "environment_id": ENVIRONMENT["id"],
    "environment_name": ENVIRONMENT["name"],
    "environment_slug": ENVIRONMENT["slug"],
    "serial": 6,
    "md5": "11a95caa08ea60c7843ce9d14f731f5b",
    "lineage": "174ae0f8-1f93-4dde-ae32-62f72cd6ad8b",
    "size_bytes": 579,
    "engine": "TERRAFORM",
    "client_encrypted": False,
    "failing_checks": None,
    "created_at": "2025-01-01T00:00:00.000000Z",
    "updated_at": "2025-01-08T17:48:04.444227Z",
}
STATE: Final[dict[str, Any]] = {
    **UNLOCKED_STATE,
    "lock": {
        "lock_id": LOCK_INFO["ID"],
        "operation": LOCK_INFO["Operation"],
        "who": LOCK_INFO["Who"],
        "version": LOCK_INFO["Version"],
        "door": "http",
        "acquired_at": "2026-11-21T06:50:11.130277Z",
    },
}
FREEZE: Final = {
    "reason": "database upgrade, ask ada",
    "expected_until": "2026-11-21T18:00:00.000000Z",
}
FROZEN_STATE: Final[dict[str, Any]] = {
    **UNLOCKED_STATE,
    "frozen": {"frozen_at": "2026-11-21T06:50:11.130277Z", "frozen_by": "ada", **FREEZE},
}
DOCUMENT: Final[dict[str, Any]] = {
    "version": 4,
    "terraform_version": "1.11.4",
    "serial": 6,
    "lineage": STATE["lineage"],
    "outputs": {"size": {"value": 2, "type": "number"}},
    "resources": [],
    "check_results": None,
}
VERSION: Final[dict[str, Any]] = {
    "number": 2,
    "serial": 6,
    "lineage": STATE["lineage"],
    "md5": STATE["md5"],
    "size_bytes": 579,
    "created_at": "2025-01-08T17:48:04.444227Z",
    "created_by": "ada",
    "token_id": "tok-03h9yiujf94l2b5uzm27j8ljz",
}
RESTORED_VERSION: Final = {**VERSION, "number": 3, "serial": 7}
_ADDRESS: Final = {
    "address": "terraform_data.counted[0]",
    "deposed": None,
    "module": None,
    "mode": "managed",
    "type": "terraform_data",
    "name": "counted",
    "index_key": 0,
}
OUTPUTS: Final = {
    "outputs": [
        {
            "name": "password",
            "value": "(sensitive value)",
            "type": "(sensitive value)",
            "sensitive": True,
            "hidden": msgspec.to_builtins(MARKED.describe()),
        },
        {"name": "size", "value": 2, "type": "number", "sensitive": False, "hidden": None},
    ],
    "version_number": 2,
    "next_page_token": "",
}
RESOURCES: Final = {
    "resources": [
        {
            **_ADDRESS,
            "provider": 'provider["terraform.io/builtin/terraform"]',
            "status": None,
            "schema_version": 0,
            "create_before_destroy": False,
            "dependencies": [],
            "sensitive_attributes": [],
            "attributes": {"id": "0de1d996-ed9e-aba3-daa9-3c969235aef7", "input": "item 0"},
            "hidden": None,
        }
    ],
    "version_number": 2,
    "next_page_token": "",
}
DIFFERENCE: Final = {
    "diff": {
        "before": {**VERSION, "number": 1, "serial": 5, "terraform_version": "1.11.3"},
        "after": {**VERSION, "terraform_version": "1.11.4"},
        "summary": {
            "outputs": {"added": 0, "changed": 0, "removed": 0},
            "resources": {"added": 0, "changed": 1, "removed": 0},
            "check_results": {"added": 0, "changed": 1, "removed": 0},
        },
        "metadata": [{"field": "terraform_version", "before": "1.11.3", "after": "1.11.4"}],
        "outputs": [],
        "resources": [
            {
                **_ADDRESS,
                "action": "CHANGED",
                "attributes": [
                    {
                        "path": "input",
                        "action": "CHANGED",
                        "before": "item",
                        "after": "item 0",
                        "sensitive": False,
                    }
                ],
                "metadata": [{"field": "status", "before": None, "after": "tainted"}],
            }
        ],
        "check_results": [
            {
                "object": "check.health",
                "object_kind": "check",
                "action": "CHANGED",
                "before": "pass",
                "after": "fail",
                "failure_messages": {"before": [], "after": ["shop.example answered 503"]},
            }
        ],
    },
    "next_page_token": "",
}
RESOURCE_ENTRY: Final[dict[str, Any]] = {
    "id": "019a0f29-7c00-7d82-b082-532b629f6fbe",
    "state_id": STATE["id"],
    "component_id": COMPONENT["id"],
    "component_slug": COMPONENT["slug"],
    "environment_id": ENVIRONMENT["id"],
    "environment_slug": ENVIRONMENT["slug"],
    "version_number": 2,
    "address": 'module.storage.aws_s3_bucket.logs["eu"]',
    "deposed": "",
    "module": "module.storage",
    "mode": "managed",
    "type": "aws_s3_bucket",
    "name": "logs",
    "index_key": "eu",
    "provider": "registry.terraform.io/hashicorp/aws",
}
RESOURCE_INDEX: Final[dict[str, Any]] = {
    "resource_index": {
        "waiting": 2,
        "waiting_is_exact": True,
        "oldest_waiting_seconds": 1.25,
        "unreadable": [
            {
                "state_id": STATE["id"],
                "component_id": COMPONENT["id"],
                "component_slug": COMPONENT["slug"],
                "environment_id": ENVIRONMENT["id"],
                "environment_slug": ENVIRONMENT["slug"],
                "version_number": 2,
                "problem": "STATE_ENCRYPTED",
            }
        ],
    },
    "next_page_token": "",
}
