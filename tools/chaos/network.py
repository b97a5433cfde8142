"""The hosts of a scenario: network namespaces on a bridge, isolated from other networks.

All programs run in ``lab`` or on one of the hosts, so that addresses do not conflict with the
network of the machine.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator

HOSTS = ("a", "b", "c")
ADDRESSES = {"lab": "10.213.0.1", "a": "10.213.0.11", "b": "10.213.0.12", "c": "10.213.0.13"}
# The parent process creates the hosts, and passes the prefix to the process in the lab.
PREFIX = os.environ.get("CHAOS_NETWORK", f"chaos-{os.getpid()}")


def inside(host: str) -> list[str]:
    """Return the prefix of a command line that runs a command on a host."""
    return ["ip", "netns", "exec", f"{PREFIX}-{host}"]


def _ip(*arguments: str, host: str = "") -> None:
    where = ["-n", f"{PREFIX}-{host}"] if host else []
    subprocess.run(["ip", *where, *arguments], check=True)


@contextlib.contextmanager
def network() -> Iterator[None]:
    """Create the hosts, and delete them after the block."""
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
    """Add permanent neighbour entries for every host.

    Otherwise, the kernel would soon report an isolated host as unreachable. Behind a router, a
    client would receive no report.
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
    """Isolate a host from all other hosts. Packets are dropped silently.

    The host keeps its address, so that connections hang as after the failure of a switch.
    """
    _ip("link", "set", f"to-{host}", "nomaster", host="lab")


def mend(host: str) -> None:
    """Reconnect an isolated host."""
    _ip("link", "set", f"to-{host}", "master", "bridge0", host="lab")
