"""Files that only their owner can read: infra_service.lib.commandline.private_files."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from infra_service.lib.commandline import private_files
from infra_service.lib.commandline.private_files import (
    InsecureDirectoryError,
    NotRegularError,
    PrivateDirectory,
    open_regular,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_created_directories_and_files_are_private(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b" / "c"

    with PrivateDirectory.made(root) as directory, directory.folder("d") as folder:
        with folder.create("file") as file:
            file.write(b"x")
        folder.rename("file", "final")

    for path in (tmp_path / "a", tmp_path / "a/b", root, root / "d"):
        assert mode(path) == 0o700
    assert mode(root / "d/final") == 0o600


def test_a_folder_of_ours_is_closed(tmp_path: Path) -> None:
    root = tmp_path / "open"
    root.mkdir(mode=0o755)

    PrivateDirectory.made(root).close()

    assert mode(root) == 0o700


def test_no_link_is_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").symlink_to(target)
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(root)

    with PrivateDirectory.made(root) as directory:
        with directory.create("file") as file:
            file.write(b"new")
        with pytest.raises(NotADirectoryError):
            directory.folder("folder")
    with pytest.raises(NotADirectoryError):
        PrivateDirectory.made(tmp_path / "link")

    assert target.read_bytes() == b"precious"
    assert not (root / "file").is_symlink()
    assert (root / "file").read_bytes() == b"new"
    with PrivateDirectory.existing(tmp_path / "link") as directory:
        assert directory.names() == {"file", "folder"}


@pytest.mark.parametrize("bits", [0o777, 0o1777, 0o702])
def test_directory_writable_by_other_users_is_rejected(tmp_path: Path, bits: int) -> None:
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(bits)

    for opened in (PrivateDirectory.made, PrivateDirectory.existing):
        with pytest.raises(
            InsecureDirectoryError, match="Another user owns the directory or can write to it"
        ):
            opened(root)


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, -1)
    else:
        monkeypatch.setattr(private_files.os, "geteuid", lambda: 12345)

    with pytest.raises(InsecureDirectoryError):
        PrivateDirectory.existing(tmp_path)


@pytest.mark.parametrize("kind", ["fifo", "socket", "directory", "device"])
def test_only_a_regular_file_is_read(tmp_path: Path, kind: str) -> None:
    """At once, because a FIFO without a writer would block."""
    path = tmp_path / "file"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(os.path.relpath(path))
    else:
        path = Path("/dev/zero")

    with pytest.raises(OSError) as raised:  # noqa: PT011 - a socket cannot be opened at all
        open_regular(path)

    assert isinstance(raised.value, NotRegularError) or kind == "socket"


def test_a_link_is_read_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")

    with pytest.raises(OSError, match="symbolic links"):
        open_regular(tmp_path / "link")
    with open_regular(tmp_path / "link", follow=True) as file:
        assert file.read() == b"x"
