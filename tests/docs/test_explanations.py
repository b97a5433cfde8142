"""The write rules and sizes in docs/explanation match the code."""

import re
import uuid
from typing import Any

import pytest
from django.conf import settings
from gunicorn.config import WorkerConnections

from apikeys import actions, models, revalidation
from apikeys.actions import access_tokens
from filterlang import grammar
from infra_service.lib.api import pagination
from infra_service.lib.database.bounded_pages import reading
from infra_service.lib.server import worker
from infra_service.webhooks.models import MAX_ENDPOINTS
from states import lockinfo
from states.actions.catalogue import CatalogueEntry
from states.document import sealing
from states.models import MAX_SERIAL
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.docs.walk import ROOT
from tests.e2e.backend import document, lock_info
from workloads.api import images
from workloads.history import KEPT, MOST_TRANSITIONS
from workloads.reporting.wire import MAX_WORKLOADS

EXPLANATION = ROOT / "docs" / "explanation"
GUNICORN = ROOT / "infra_service" / "gunicorn.py"
LIMITS = (EXPLANATION / "limits.md").read_text()
RULES = re.findall(
    r"^\| (.+?) \| (.+) \| (200|stored|4\d\d)",
    (EXPLANATION / "who-may-write.md").read_text(),
    re.MULTILINE,
)


class Case:
    """A state at serial 5, and a push to it."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.path = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"
        self.held = str(uuid.uuid4())
        assert self.push(document(5)).status_code == 200

    def lock(self) -> None:
        answer = self.client.send("LOCK", self.path, lock_info(self.held))
        assert answer.status_code == 200

    def push(self, body: bytes, query: str = "") -> Any:
        return self.client.generic("POST", self.path + query, body, "application/json")


# The state, whether the right lock ID, another or no ID is given, the document, and the answer.
PUSHES = [
    ("locked", None, document(6), (423, "STATE_LOCKED")),
    ("locked", "other", document(6), (423, "STATE_LOCKED")),
    ("locked", "held", document(3, "other lineage"), (200, "")),
    ("unlocked", "other", document(6), (409, "LOCK_NOT_HELD")),
    ("unlocked", None, document(6), (200, "")),
    ("unlocked", None, document(4), (409, "SERIAL_CONFLICT")),
    ("unlocked", None, document(6, "other lineage"), (409, "LINEAGE_MISMATCH")),
    ("locked", "held", document(5), (200, "")),
    ("unlocked", None, document(5), (200, "")),
    ("locked", None, document(5), (423, "STATE_LOCKED")),
    ("unlocked", "other", document(5), (409, "LOCK_NOT_HELD")),
]


@pytest.mark.parametrize(("state", "given", "body", "expected"), PUSHES)
def test_write_permissions_by_lock(
    client_with: ClientWith, state: str, given: str | None, body: bytes, expected: tuple[int, str]
) -> None:
    case = Case(client_with("state:read", "state:write"))
    if state == "locked":
        case.lock()
    lock_id = {None: "", "held": case.held, "other": str(uuid.uuid4())}[given]

    answer = case.push(body, f"?ID={lock_id}" if given else "")

    reason = "" if answer.status_code == 200 else error_reason(answer)
    assert (answer.status_code, reason) == expected
    (record,) = case.client.items("/api/v1/states", "states")
    stored = answer.status_code == 200 and body != document(5)
    versions = case.client.items(f"/api/v1/states/{record['id']}/versions", "versions")
    assert len(versions) == 1 + stored


def test_the_table_has_these_rules() -> None:
    assert [(state, answer) for state, _, answer in RULES] == [
        ("frozen", "423"),
        ("locked", "423"),
        ("locked", "stored"),
        ("unlocked", "409"),
        ("unlocked", "409"),
        ("unlocked", "stored"),
        ("unlocked", "409"),
        ("any", "200"),
    ]


def test_force_overrides(client_with: ClientWith) -> None:
    case = Case(client_with("state:read", "state:write", "state:admin"))

    assert case.push(document(1, "other lineage"), "?force=true").status_code == 200


def test_documented_sizes_match() -> None:
    sizes = LIMITS.split("\n## Sizes\n")[1].split("\n## ")[0]
    documented = dict(re.findall(r"^\| (.+?) \| (.+?) \| .*\|$", sizes, re.MULTILINE))
    mebibyte, most = 1024**2, reading.MOST_ROWS
    # Read, not imported: gunicorn's settings prepare the process that imports them.
    (line,) = re.findall(r"^limit_request_line = (\d+)$", GUNICORN.read_text(), re.MULTILINE)
    reports = f"{settings.WORKLOADS_MAX_BYTES // mebibyte} MiB, {MAX_WORKLOADS:,} workloads"

    assert {name: documented[name] for name in documented if name not in {"item", "---"}} == {
        "state document": f"{settings.STATE_MAX_BYTES // mebibyte} MiB",
        "workload report, decompressed": reports,
        "other bodies": f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE // mebibyte} MiB",
        "LockInfo": f"{lockinfo.MAX_BYTES // 1024} KiB",
        "filter": f"1024 characters, {grammar.MAX_DEPTH} nested parentheses",
        "page": f"{pagination.MAX_PAGE_SIZE} items",
        "rows read for a page": (
            f"{most:,}; {most // reading._DEARER_IN_ORDER:,} for searches in texts or labels in "
            f"list order; {most // reading._DEARER_BY_KEY:,} for workloads filtered by image; "
            f"{images.MOST_ROWS:,} for the list of images; "
            f"{reading._LEAST_ROWS:,} for frequent text searches, or with `managed`"
        ),
        "request line": f"{line} bytes",
        "open connections per worker": (
            f"{WorkerConnections.default:,}, and up to {worker._MOST_LINGERING} that have "
            "received their last response and wait for the client to close "
            "(`tests/infra_service/test_worker.py`)"
        ),
        "components, or environments, in a binding": f"{models.MAX_BOUND_IDS}",
        "serial": f"{MAX_SERIAL}",
        "lineage": f"{sealing.MAX_LINEAGE} characters",
        "name": f"{CatalogueEntry._meta.get_field('name').max_length} characters",
        "lifetime of a minted token": f"{access_tokens.MAX_MINTED_LIFETIME.seconds // 3600} hours",
        "active keys per owner": (
            f"{revalidation.MAX_WORKING_KEYS}, when a key creates them or extends expired keys"
        ),
        "grace period of a rotation": f"{actions.MAX_GRACE_PERIOD.days} days",
        "webhooks per owner": f"{MAX_ENDPOINTS}",
        "transitions per workload": f"{MOST_TRANSITIONS}, and {KEPT.days} days",
    }
