"""gunicorn's settings: ``gunicorn -c python:infra_service.gunicorn infra_service.wsgi``."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured
from gunicorn.glogging import Logger

from infra_service import __version__, logs
from infra_service.operations import metric_files

# gthread, with errors in our form, which gives a thread to a request that has arrived.
worker_class = "infra_service.lib.server.worker.ServiceWorker"
workers = int(os.environ.get("WEB_WORKERS", "2"))
# Many threads, because a slow upload holds one: with four a worker, eight slow clients stall all.
threads = int(os.environ.get("WEB_THREADS", "32"))
_port = os.environ.get("PORT", "8000")
bind = os.environ.get("BIND", f"127.0.0.1:{_port}")
# The kernel spreads connections over the workers. With reuse_port, gunicorn ignores a socket that
# systemd passes, which the workers share.
reuse_port = "LISTEN_FDS" not in os.environ
# The most that gunicorn takes: a long filter is longer still when it is percent-encoded.
limit_request_line = 8190
# gunicorn would believe every process of this machine, and whoever comes by a Unix socket, that the
# request came by TLS (infra_service.settings says whom to believe), and what its path is.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
keepalive = 75
# The system call would wait without our limit for a client that reads slowly.
sendfile = False
timeout = 120
graceful_timeout = 30
# gunicorn's administration socket would be one more door.
control_socket_disable = True
_var = os.environ.get("VAR_DIR", str(Path(__file__).resolve().parent.parent / "var"))
loglevel = os.environ.get("GUNICORN_LOG_LEVEL", "warning")


class JsonLogger(Logger):  # type: ignore[misc,unused-ignore]
    """gunicorn's own lines in our form.

    It quotes what it cannot parse, which may be a token in the wrong place: our formatter blanks
    it out.
    """

    def setup(self, cfg: Any) -> None:
        """Set up the log."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(logs.formatter())


logger_class = JsonLogger


def on_starting(server: Any) -> None:  # noqa: ARG001 - gunicorn's signature
    """Say which version starts, and let the workers count together.

    They count in small files, from 0; without a place for them, the server stops.
    """
    logs.configure(os.environ.get("LOG_LEVEL", "INFO"))
    structlog.get_logger("infra_service").info("starting", version=__version__, bind=bind)
    directory = Path(_var, "metrics")
    try:
        metric_files.create(directory)
    except OSError as error:
        sys.exit(f"VAR_DIR must be a directory that this user can write to: {error}")


def child_exit(server: Any, worker: Any) -> None:
    """Keep what the worker had counted; if that fails the server goes on all the same."""
    try:
        metric_files.merge_exited_worker(worker.pid)
    except (OSError, RuntimeError):
        server.log.exception("the counts of worker %s are not merged", worker.pid)


def when_ready(server: Any) -> None:
    """Make Ctrl-C as gentle as SIGTERM, where requests in flight are answered; load the service.

    The workers are forks of this process: each has the service at once, and their memory is shared
    until they write to it. gunicorn's own `preload_app` would come before `on_starting`, and so
    before prometheus_client can see where the workers count.
    """
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    try:
        server.app.wsgi()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    gc.collect()
    # The garbage collector would write to, and so copy, each page that it visits; and while a large
    # report is read it would walk through all of it again and again, for a tenth of a second.
    gc.freeze()


def post_fork(server: Any, worker: Any) -> None:  # noqa: ARG001 - gunicorn's signature
    """Create the worker's files, if the disk has room for them, and keep its memory small."""
    metric_files.allocate()
    _return_memory()


def _return_memory() -> None:
    """Let glibc give large blocks back to the system as soon as they are free.

    By default it keeps blocks of up to 32 MiB, for each of many threads: documents that are gone
    would stay in memory beside those that the budget counts.
    """
    with contextlib.suppress(AttributeError, OSError):  # another libc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 1024 * 1024)
        mallopt(_M_ARENA_MAX, 2)


# glibc's malloc.h
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8


def post_worker_init(worker: Any) -> None:  # noqa: ARG001 - gunicorn's signature
    """Leave Ctrl-C, which the terminal sends to every process, to the arbiter."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
