"""The checks of deploy/upgrade.sh before its first change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.installation import ROOT


@pytest.mark.parametrize(
    ("release", "message"), [("installed", "is in use"), ("empty", "contains no release")]
)
def test_a_wrong_directory_changes_nothing(release: str, message: str, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    (installed / "deploy").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (installed / "manage.py").touch()
    script = (ROOT / "deploy" / "upgrade.sh").read_text()
    assert "installed=/opt/infra-service " in script
    upgrade = installed / "deploy" / "upgrade.sh"
    upgrade.write_text(script.replace("=/opt/infra-service ", f"={installed} "))

    done = subprocess.run(
        ["sh", upgrade, tmp_path / release], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert f"upgrade: {tmp_path / release} {message}" in done.stderr
    assert installed.is_dir()
    assert not installed.is_symlink()
