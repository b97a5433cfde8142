"""The options of commands that can repeat their work, such as ``--watch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from infra_service.lib.commandline.heartbeat import BeatingEvent, Heartbeat, add_heartbeat_option
from infra_service.lib.commandline.stopping import stop_at_eof

if TYPE_CHECKING:
    import threading
    from argparse import ArgumentParser
    from collections.abc import Mapping


def add_watch_options(parser: ArgumentParser, looked_for: str) -> None:
    """Add ``--watch``, and the related options for the interval, the end and the heartbeat."""
    parser.add_argument("--watch", action="store_true", help="run until SIGTERM or SIGINT")
    parser.add_argument(
        "--interval", type=float, default=1.0, metavar="S",
        help=f"with --watch: seconds between two checks for {looked_for}",
    )  # fmt: skip
    parser.add_argument(
        "--until-eof",
        action="store_true",
        help="with --watch: also stop at the end of standard input, such as a pipe from the "
        "parent process",
    )
    add_heartbeat_option(parser)


def stop_of(options: Mapping[str, Any]) -> threading.Event:
    """Return the event that stops the command. With ``--until-eof``, the end of input also sets it.

    Raises:
        CommandError: the interval is invalid, or the heartbeat file is not writable.
    """
    if not options["interval"] > 0:  # true for NaN, too
        raise CommandError("--interval must be greater than 0 seconds")
    stop = BeatingEvent(Heartbeat(options["heartbeat_file"]))
    if options["watch"] and options["until_eof"]:
        stop_at_eof(stop)
    return stop
