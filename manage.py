#!/usr/bin/env python
"""Django's command line for this project."""

import errno
import io
import os
import signal
import sys
from typing import TextIO, cast

from infra_service import __version__
from infra_service.lib.commandline.environment_files import EnvironmentFileError, load_named
from infra_service.lib.commandline.error_output import ErrorOutput


def main() -> None:
    """Run one management command, with the settings of each ``--env-file FILE`` before its name."""
    if sys.stdout is None:
        # Otherwise, the database or a connection would get the descriptor of the standard output.
        sys.exit("The standard output is closed. Redirect it, for example to /dev/null.")
    sys.stderr = cast("TextIO", ErrorOutput(sys.stderr))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        # A terminal that is not UTF-8 must not prevent the output of a new secret.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.argv = load_named(sys.argv)
    except EnvironmentFileError as error:
        sys.exit(str(error))
    is_agent = sys.argv[1:2] == ["sync_workloads"] and any(
        argument.split("=")[0] == "--report-to" for argument in sys.argv
    )
    module = "infra_service.agent.settings" if is_agent else "infra_service.settings"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", module)
    try:
        _run(sys.argv, is_agent=is_agent)
        sys.stdout.flush()
    except KeyboardInterrupt as stop:
        over_the_echo = "\r" if sys.stderr.isatty() else ""
        stopped = f"Stopped {stop}".rstrip()
        sys.stderr.write(f"{over_the_echo}{stopped}; what was done stays done.\n")
        sys.exit(128 + signal.SIGINT)
    except OSError as error:
        # The reader of the output, such as `head`, has ended, or a disk or a quota is full.
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT):
            raise
        # Otherwise, Python would write the remaining output when it exits, and report the error
        # again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE if error.errno == errno.EPIPE else error.strerror)


def _run(argv: list[str], *, is_agent: bool) -> None:
    if argv[1:] in (["version"], ["--version"]):  # else it would be Django's
        sys.stdout.write(f"{__version__}\n")
        return
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 - may be interrupted
    from django.db import Error  # noqa: PLC0415 - the same

    if is_agent:
        from infra_service.agent.run import run_agent as run  # noqa: PLC0415 - the same
    else:
        from infra_service.lib.commandline.overview import run  # noqa: PLC0415

    try:
        run(argv)
    except ImproperlyConfigured as error:
        if "--traceback" in argv:
            raise
        sys.exit(f"{error}. See docs/reference/settings.md.")
    except Error as error:
        from infra_service.lib.database.failures import explanation_of  # noqa: PLC0415 - rare

        explanation = explanation_of(error)
        if explanation is None or "--traceback" in argv:
            raise
        sys.exit(explanation)


if __name__ == "__main__":
    main()
