"""Close a listening socket without resetting the connections of its queue."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
from typing import Any, Final

# From Linux's asm-generic/socket.h. Python has no name for it.
_SO_ATTACH_FILTER: Final = 26
# A classic BPF program: load the byte of TCP's flags, and drop the segment if SYN (2) is set.
_DROP_SYN: Final = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in (
        (0x30, 0, 0, 13),  # load the byte at offset 13
        (0x45, 0, 1, 0x02),  # if SYN is not set, skip one instruction
        (0x06, 0, 0, 0),  # drop the segment
        (0x06, 0, 0, 0xFFFFFFFF),  # accept the whole segment
    )
)


def ignore_new_connections(listener: Any) -> None:
    """Let the kernel drop each attempt to connect, so that the queue can be emptied.

    The kernel resets the connections that are in the queue when the socket is closed. A client
    whose attempt is dropped repeats it after a second, and then finds another worker or a closed
    port. Other systems than Linux have no such filter.
    """
    program = ctypes.create_string_buffer(_DROP_SYN, len(_DROP_SYN))
    length = len(_DROP_SYN) // struct.calcsize("HBBI")
    with contextlib.suppress(OSError):
        listener.setsockopt(
            socket.SOL_SOCKET,
            _SO_ATTACH_FILTER,
            struct.pack("HP", length, ctypes.addressof(program)),
        )
