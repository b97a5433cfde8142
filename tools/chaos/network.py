"""Hosts of our own: network namespaces on one bridge, which nothing else can reach.

Everything runs within ``lab`` and the hosts, so that no address here means anything on the
machine's own network.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator

HOSTS = ("a", "b", "c")
ADDRESSES = {"lab": "10.213.0.1", "a": "10.213.0.11", "b": "10.213.0.12", "c": "10.213.0.13"}
# The parent makes the hosts and hands their name on to the process that runs within the lab.
PREFIX = os.environ.get("CHAOS_NETWORK", f"chaos-{os.getpid()}")


def inside(host: str) -> list[str]:
    """Return the words that run a command on a host."""
    return ["ip", "netns", "exec", f"{PREFIX}-{host}"]


def _ip(*arguments: str, host: str = "") -> None:
    where = ["-n", f"{PREFIX}-{host}"] if host else []
    subprocess.run(["ip", *where, *arguments], check=True)


@contextlib.contextmanager
def network() -> Iterator[None]:
    """Make the hosts for as long as the block."""
    made = []
    try:
        for host in ("lab", *HOSTS):
            _ip("netns", "add", f"{PREFIX}-{host}")
            made.append(host)
            _ip("link", "set", "lo", "up", host=host)
        _ip("link", "add", "bridge0", "type", "bridge", host="lab")
        _ip("address", "add", f"{ADDRESSES['lab']}/24", "dev", "bridge0", host="lab")
        _ip("link", "set", "bridge0", "up", host="lab")
        for host in HOSTS:
            peer = ("peer", "name", "eth0", "netns", f"{PREFIX}-{host}")
            _ip("link", "add", f"to-{host}", "type", "veth", *peer, host="lab")
            _ip("link", "set", f"to-{host}", "master", "bridge0", "up", host="lab")
            _ip("address", "add", f"{ADDRESSES[host]}/24", "dev", "eth0", host=host)
            _ip("link", "set", "eth0", "up", host=host)
        _make_neighbours_known()
        yield
    finally:
        for host in made:
            _ip("netns", "delete", f"{PREFIX}-{host}")


def _make_neighbours_known() -> None:
    """Let every host know the others for good.

    Otherwise the kernel would soon tell that a host is unreachable, and a router tells nothing.
    """
    for number, host in enumerate(ADDRESSES):
        device = "bridge0" if host == "lab" else "eth0"
        _ip("link", "set", device, "address", f"02:00:00:00:00:0{number}", host=host)
    for host in ADDRESSES:
        device = "bridge0" if host == "lab" else "eth0"
        for number, other in enumerate(ADDRESSES):
            if other != host:
                mac = ("lladdr", f"02:00:00:00:00:0{number}", "nud", "permanent")
                _ip("neighbour", "replace", ADDRESSES[other], "dev", device, *mac, host=host)


def cut(host: str) -> None:
    """Part a host from all others: packets vanish, and nobody is told.

    The address stays, so that connections hang as they do when a switch dies.
    """
    _ip("link", "set", f"to-{host}", "nomaster", host="lab")


def mend(host: str) -> None:
    """Join it again."""
    _ip("link", "set", f"to-{host}", "master", "bridge0", host="lab")
