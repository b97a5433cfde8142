"""A manifest that was not written by this service: an import ends, and refuses it in a sentence."""

from __future__ import annotations

import copy
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from tests.states.conftest import document
from tests.states.test_import_states import Run
from tests.states.test_origins import exported

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.long]
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**63, 10**400, 1.5, "", "x" * 300, "x" * 70_000, "a\0b", "\ud800",
    "Not A Slug", "../x", "/etc/passwd", ".", "..", "a//b", [], {}, "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z",
)  # fmt: skip


def lines_of(directory: Path) -> list[Any]:
    return list(map(json.loads, (directory / "manifest.jsonl").read_text().splitlines()))


def export(directory: Path) -> Path:
    number = {1: document(1)}
    return exported(directory, installation=uuid.uuid4(), state_id=uuid.uuid4(), numbers=number)


@pytest.mark.parametrize("place", ["header", "state", "version"])
def test_each_member_in_each_odd_form_is_handled(tmp_path: Path, place: str) -> None:
    """Only the command's own error may be raised, in a dry run and in an import."""
    whole = lines_of(export(tmp_path))

    def member(lines: list[Any]) -> dict[str, Any]:
        found: dict[str, Any] = lines[0] if place == "header" else lines[1]
        return found["versions"][0] if place == "version" else found

    for name in member(whole):
        for odd in ODD:
            changed = copy.deepcopy(whole)
            member(changed)[name] = odd
            text = "".join(json.dumps(line) + "\n" for line in changed)
            (tmp_path / "manifest.jsonl").write_text(text)
            for arguments in ((), ("--dry-run",)):
                with transaction.atomic():
                    done = Run("--from", tmp_path, *arguments)
                    transaction.set_rollback(True)
                assert done.out or done.error


def test_the_greatest_number_has_a_successor(tmp_path: Path, client_with: Any) -> None:
    given: Any = {"installation": uuid.uuid4(), "state_id": uuid.uuid4()}
    too_great = exported(tmp_path / "1", **given, numbers={2**30 + 1: document(1)})
    assert "`int` <= 1073741824" in Run("--from", too_great).error
    assert (
        Run("--from", exported(tmp_path / "2", **given, numbers={2**30: document(1)})).error == ""
    )

    pushed = client_with("state:write").post(
        "/api/v1/state/at/net/prod", document(2), "application/json"
    )

    assert pushed.status_code == 200


def test_duplicate_state_is_refused(tmp_path: Path) -> None:
    lines = lines_of(export(tmp_path))
    text = "".join(json.dumps(line) + "\n" for line in (*lines, lines[1]))
    (tmp_path / "manifest.jsonl").write_text(text)

    done = Run("--from", tmp_path)

    assert done.out.endswith("1 imported\n")
