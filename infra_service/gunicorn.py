"""gunicorn's settings: ``gunicorn -c python:infra_service.gunicorn infra_service.wsgi``."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO, cast

import structlog
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, SystemCheckError
from gunicorn.glogging import Logger

from infra_service import __version__, logs
from infra_service.lib.commandline.error_output import ErrorOutput
from infra_service.lib.environment import Environment
from infra_service.lib.error_text import reason_of
from infra_service.operations import metric_files, tracing

if sys.stderr is None:  # closed by the parent process
    sys.stderr = cast("TextIO", ErrorOutput(None))
# A gthread worker with the API's error format. It assigns a thread only after a request arrived.
worker_class = "infra_service.lib.server.worker.ServiceWorker"
_env = Environment()
workers = _env.int("WEB_WORKERS", default=2)
# Many threads, because a slow upload occupies a thread. With 4 threads per worker, 8 slow clients
# would block all threads.
threads = _env.int("WEB_THREADS", default=32)
_port = os.environ.get("PORT", "8000")
bind = os.environ.get("BIND", f"127.0.0.1:{_port}")
# With reuse_port, the kernel distributes connections over the workers, but gunicorn ignores a
# socket from systemd. The workers share the socket from systemd.
reuse_port = "LISTEN_FDS" not in os.environ
_address = bind if reuse_port else "systemd"
# gunicorn's maximum, because percent-encoding lengthens a long filter.
limit_request_line = 8190
# By default, gunicorn accepts headers with the scheme and the path from local processes and Unix
# sockets. infra_service.settings determines the trusted proxies instead.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
keepalive = 75
# The system call would wait for a slow client without a time limit.
sendfile = False
timeout = 120
graceful_timeout = 30
# gunicorn's administration socket would be another entry point.
control_socket_disable = True
_var = os.environ.get("VAR_DIR", str(Path(__file__).resolve().parent.parent / "var"))
loglevel = os.environ.get("GUNICORN_LOG_LEVEL", "warning")


class JsonLogger(Logger):  # type: ignore[misc,unused-ignore]
    """A logger that writes gunicorn's log lines in the service's format.

    gunicorn quotes input that it cannot parse, which may contain a token. The formatter redacts
    tokens.
    """

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(logs.formatter())


logger_class = JsonLogger


def on_starting(server: Any) -> None:  # noqa: ARG001 - gunicorn's signature
    """Log the version that starts, and prepare the shared metrics of the workers.

    The counts are in small files and start from 0. Without a writable directory, the server exits.
    Garbage collection is suspended until the service is loaded.
    """
    gc.disable()
    logs.configure(logs.minimum_severity(os.environ.get("LOG_LEVEL", "INFO")))
    structlog.get_logger("infra_service").info("starting", version=__version__, bind=_address)
    directory = Path(_var, "metrics")
    try:
        metric_files.create(directory)
    except OSError as error:
        sys.exit(f"VAR_DIR must be a directory that this user can write to: {reason_of(error)}")


def child_exit(server: Any, worker: Any) -> None:
    """Keep the counts of an exited worker. A failure does not stop the server."""
    try:
        metric_files.merge_exited_worker(worker.pid)
    except (OSError, RuntimeError):
        server.log.exception("the counts of worker %s are not merged", worker.pid)


def when_ready(server: Any) -> None:
    """Load and check the service, and let Ctrl-C finish requests in progress, like SIGTERM.

    The workers are forks of this process, so they start quickly and share its memory until they
    write to it. gunicorn's own `preload_app` would load the service before `on_starting`, and thus
    import prometheus_client before the directory of the metrics is set.
    """
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    try:
        server.app.wsgi()
        BaseCommand().check()
    except (ImproperlyConfigured, SystemCheckError) as error:
        sys.exit(str(error))
    from infra_service import key_canary  # noqa: PLC0415 - the service is loaded only now

    try:
        key_canary.verify_at_start()
    except key_canary.EncryptionKeyWrong as error:
        sys.exit(str(error))
    gc.collect()
    # The garbage collector would write to each visited page, which copies the page. It would also
    # traverse all objects repeatedly, for 0.1 s each, while the service reads a large report.
    gc.freeze()
    gc.enable()


def post_fork(server: Any, worker: Any) -> None:  # noqa: ARG001 - gunicorn's signature
    """Create metric files if the disk has space, configure malloc, and start tracing."""
    metric_files.allocate()
    _return_memory()
    tracing.start()


def _return_memory() -> None:
    """Make glibc return large blocks to the system as soon as they are free.

    By default, glibc retains free blocks of up to 32 MiB per thread, in addition to the memory
    budget, which counts only documents in use.
    """
    with contextlib.suppress(AttributeError, OSError):  # another libc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 1024 * 1024)
        mallopt(_M_ARENA_MAX, 2)


# From glibc's malloc.h.
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8


def post_worker_init(worker: Any) -> None:  # noqa: ARG001 - gunicorn's signature
    """Ignore Ctrl-C, which the terminal sends to every process. The arbiter handles the signal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
