"""A real systemd as the init of a container, on a copy-on-write view of this machine.

The container shares only the network with the machine. It has separate processes and ``/tmp``, and
changes no file outside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.waiting import wait_until

INIT: Final = Path("/lib/systemd/systemd")
_NAMESPACES: Final = ("--pid", "--mount", "--uts", "--ipc", "--cgroup")
# /proc/sys and /sys are read-only; /dev, /run and /tmp are its own, because systemd clears them.
_BOOT: Final = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs none "$PLACE"
mkdir "$PLACE/upper" "$PLACE/work" "$PLACE/root"
root=$PLACE/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$PLACE/upper,workdir=$PLACE/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
for each in tmp var/tmp; do mount -t tmpfs -o mode=1777 none "$root/$each"; done
mount -t tmpfs -o mode=755 none "$root/run"
mount -t tmpfs -o mode=755 none "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 none "$root/dev/shm"
for each in null zero full random urandom tty; do
    touch "$root/dev/$each"; mount --bind "/dev/$each" "$root/dev/$each"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
for pair in $BINDS; do
    mkdir -p "$root/${pair#*=}"; mount --bind "${pair%%=*}" "$root/${pair#*=}"
done
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/*.requires
echo 0123456789abcdef0123456789abcdef > "$root/etc/machine-id"
printf '[Unit]\nRequires=dbus.socket\nAfter=dbus.socket\n' > "$root/etc/systemd/system/tests.target"
cd "$root"
pivot_root . mnt
umount --lazy mnt
exec env -i PATH="$PATH" container=other %s --system --unit=tests.target \
    --show-status=no --log-target=journal
"""


class Systemd:
    """A booted systemd."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def command(self, *words: str | Path) -> list[str | Path]:
        """Return the command prefix that runs a command inside, as root."""
        return ["nsenter", f"--target={self.pid}", *_NAMESPACES, "--root", "--wd", *words]

    def run(self, script: str, timeout: float = 600) -> str:
        """Run commands as root, stop at the first that fails, and return their output."""
        shell = self.command("bash", "-euo", "pipefail", "-c", script)
        done = subprocess.run(
            shell, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
            check=False, env={"PATH": os.environ["PATH"], "HOME": "/root"},
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{self.journal()}"
        return done.stdout

    def write(self, path: str, content: str) -> None:
        """Write a file inside."""
        shell = self.command("sh", "-c", 'mkdir -p "${1%/*}" && cat > "$1"', "sh", path)
        subprocess.run(shell, input=content, text=True, check=True)

    def journal(self) -> str:
        """Return the log of all units."""
        show = self.command("journalctl", "--no-pager", "--output=short", "--lines=100")
        return subprocess.run(show, capture_output=True, text=True, check=False).stdout


@contextlib.contextmanager
def booted(scratch: Path, binds: dict[Path, str]) -> Iterator[Systemd]:
    """Boot systemd during the block; ``binds`` are directories by their paths inside."""
    if os.getuid() or not INIT.exists() or shutil.which("unshare") is None:
        pytest.skip("booting systemd needs root, systemd and unshare")
    with _only_one():
        yield from _boot(scratch, binds)


@contextlib.contextmanager
def _only_one() -> Iterator[None]:
    """Wait for other tests: two inits in a cgroup remove each other's groups."""
    with (Path(tempfile.gettempdir()) / "infra-tests-systemd.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _boot(scratch: Path, binds: dict[Path, str]) -> Iterator[Systemd]:
    place = scratch / "systemd"
    place.mkdir()
    pairs = " ".join(f"{outside}={inside}" for outside, inside in binds.items())
    script = ["sh", "-c", _BOOT % INIT]
    with (scratch / "boot.log").open("wb") as log:
        outer = subprocess.Popen(
            ["unshare", *_NAMESPACES, "--fork", "--kill-child", *script],
            env={**os.environ, "PLACE": str(place), "BINDS": pairs}, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        wait_until(lambda: outer.poll() is not None or children.read_text().strip() != "")
        if outer.poll() is None:
            system = Systemd(int(children.read_text()))
            wait_until(lambda: outer.poll() is not None or _is_up(system))
        if outer.poll() is not None:
            pytest.skip(f"systemd does not boot here: {(scratch / 'boot.log').read_text()}")
        yield system
    finally:
        outer.kill()  # --kill-child ends the init, and with it everything inside
        outer.wait(20)


def _is_up(system: Systemd) -> bool:
    check = system.command("systemctl", "is-system-running")
    output = subprocess.run(check, capture_output=True, text=True, check=False).stdout.strip()
    return output in {"running", "degraded"}
