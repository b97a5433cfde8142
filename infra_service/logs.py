"""Log lines on standard error without tokens: JSON, or short lines for a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import msgspec
import structlog
from django.core.exceptions import ImproperlyConfigured

from infra_service.lib.commandline.error_output import ErrorOutput
from infra_service.lib.commandline.tables import printable

if TYPE_CHECKING:
    import logging

    from structlog.typing import EventDict, Processor, WrappedLogger

# Tokens anywhere in a line, even after an escaped newline in JSON (\n), or with %5F in a URL. The
# second pattern matches HTTP Basic credentials.
_TOKEN: Final = re.compile("is[kps](?:_|%5[Ff])[0-9A-Za-z]{38}")
_BASIC: Final = re.compile(r"(basic(?:[ +]|%20|\\t)+)[0-9A-Za-z+/=_%-]{8,}", re.IGNORECASE)
_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def redact(text: str) -> str:
    """Redact everything in the format of a token, and HTTP Basic credentials."""
    return _BASIC.sub(r"\1[credentials]", _TOKEN.sub("[token]", text))


def _dumps(event: EventDict, **_options: Any) -> str:
    """Serialize the event and then redact the text, to include nested values."""
    try:
        text = msgspec.json.encode(event, enc_hook=str).decode()
    except UnicodeEncodeError:  # half a surrogate pair, such as in a path that is not UTF-8
        text = json.dumps(event, default=str)
    return redact(text)


def _line(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """Return a line such as ``12:04:31 POST /api/v1/state/… 200 9 ms operator``.

    Client input cannot move the terminal's cursor or start a line, because control characters are
    escaped and tracebacks are indented.
    """
    time, level, name = event.pop("time"), event.pop("level"), event.pop("event")
    trace = event.pop("exception", "")
    if name == "request":
        known = (event.get("status"), f"{event.get('duration_ms', 0):.0f} ms")
        words = [event.get("method"), event.get("path"), *known]
        words += [event[key] for key in ("user", "reason") if key in event]
    else:
        words = [level, name, *(f"{key}={value}" for key, value in event.items())]
    line = printable(redact(" ".join(map(str, (time, *words)))))
    return "\n  ".join([line, *map(printable, redact(trace).splitlines())])


def is_for_people() -> bool:
    """Return whether ``LOG_FORMAT``, or else a terminal on stderr, requires text lines.

    Raises:
        ImproperlyConfigured: LOG_FORMAT has an invalid value.
    """
    form = os.environ.get("LOG_FORMAT", "")
    if form not in ("", "json", "text"):
        raise ImproperlyConfigured("LOG_FORMAT must be json, text or empty")
    return form == "text" or (form != "json" and sys.stderr.isatty())


def _processors() -> tuple[list[Processor], Processor]:
    """Return the processors of every event, and the processor that writes it."""
    short = is_for_people()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper("%H:%M:%S" if short else "iso", utc=not short, key="time"),
        structlog.processors.format_exc_info,
    ]
    return shared, _line if short else structlog.processors.JSONRenderer(serializer=_dumps)


def formatter() -> logging.Formatter:
    """Return the formatter for log records of the standard library."""

    def add_logger_name(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["logger"] = event["_record"].name
        return event

    shared, write = _processors()
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, add_logger_name],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, write],
    )


def of_standard_library(level: str) -> dict[str, Any]:
    """Return the part of Django's ``LOGGING`` that writes records of the standard library.

    Raises:
        ImproperlyConfigured: LOG_FORMAT has an invalid value.
    """
    is_for_people()  # the error of dictConfig does not name LOG_FORMAT
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "infra_service.logs.formatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
    }


def minimum_severity(text: str) -> str:
    """Return the minimum severity of log lines in upper case, from a ``LOG_LEVEL`` value.

    Raises:
        ImproperlyConfigured: the value is not a severity of Python's ``logging``.
    """
    if (found := text.strip().upper()) not in _LEVELS:
        raise ImproperlyConfigured(f"LOG_LEVEL must be {', '.join(_LEVELS[:-1])} or {_LEVELS[-1]}")
    return found


def configure(level: str) -> None:
    """Set up structlog for the service's events, which bypass the standard library for speed."""
    shared, write = _processors()
    structlog.configure(
        processors=[*shared, write],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(
            file=cast("TextIO", ErrorOutput(sys.__stderr__))
        ),
        cache_logger_on_first_use=True,
    )
