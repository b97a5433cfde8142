"""Two imports of the same state to different addresses at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from states.actions import importing
from states.models import Component, State
from tests.states.conftest import document
from tests.states.test_import_states import Run, run, write
from tests.support.committed import db  # noqa: F401 - commits, in place of pytest-django's

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.both]


def test_second_import_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other run stores its version just before this run."""
    write(tmp_path / "prod/shop/terraform.tfstate", document(1))
    names = '[[map]]\npattern = "{environment}/{name}/terraform.tfstate"\ncomponent = "x-{name}"\n'
    write(tmp_path / "map.toml", names.encode())
    append_version, others = importing.append_version, list[Run]()

    def append_second(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        others.append(run(tmp_path, "--map", tmp_path / "map.toml"))
        return append_version(*args, **kwargs)

    monkeypatch.setattr(importing, "append_version", append_second)
    done = run(tmp_path)

    assert list(others[0].results.values()) == ["imported"]
    assert list(done.reasons.values()) == [
        "The state was already imported to another address. Assign it that address with a map."
    ]
    assert State.objects.get().component == Component.objects.get(slug="x-shop")
