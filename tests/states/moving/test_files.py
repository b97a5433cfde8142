"""Files of an export: unreadable or unwritable files give a clear error."""

import os
from pathlib import Path

import pytest

from states.moving.directory import _time_of
from states.moving.files import DirectoryFiles, DirectoryTarget, read_file
from states.moving.sources import SourceError, TooLargeError


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        read_file(tmp_path / "missing", 10)

    (tmp_path / "large").write_bytes(b"x" * 11)
    with pytest.raises(TooLargeError):
        read_file(tmp_path / "large", 10)


@pytest.mark.parametrize("seconds", [10**14, -(10**14), 10**30])
def test_impossible_time_is_ignored(seconds: int) -> None:
    """Some file systems keep it."""
    assert _time_of(os.stat_result((0,) * 8 + (seconds, 0))) is None


def test_paths_outside_the_export_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "secret").write_bytes(b"x")

    with pytest.raises(SourceError, match="outside the export"):
        DirectoryFiles(tmp_path / "export").read_file("../secret", 10)


def test_unwritable_targets_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(SourceError, match="Not a directory"):
        DirectoryTarget(file)
    with pytest.raises(SourceError, match="is not empty"):
        DirectoryTarget(tmp_path)

    target = DirectoryTarget(tmp_path / "export")
    target.write("network/prod.tfstate", b"{}")
    with pytest.raises(SourceError, match="Not a directory"):
        target.write("network/prod.tfstate/other", b"{}")
    target.close()
