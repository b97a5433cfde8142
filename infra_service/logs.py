"""JSON log lines, on standard error, that never hold a token."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

if TYPE_CHECKING:
    import logging

    from structlog.typing import EventDict, Processor, WrappedLogger

# Wherever it stands: in JSON an n that was a line end is before it, in an address %5F may be in it.
# And what HTTP Basic makes of it.
_TOKEN: Final = re.compile("is[kps](?:_|%5[Ff])[0-9A-Za-z]{38}")
_BASIC: Final = re.compile(r"(basic(?:[ +]|%20|\\t)+)[0-9A-Za-z+/=_%-]{8,}", re.IGNORECASE)


def redact(text: str) -> str:
    """Blank out everything of a token's form, and credentials of HTTP Basic."""
    return _BASIC.sub(r"\1[credentials]", _TOKEN.sub("[token]", text))


def _dumps(event: EventDict, **_options: Any) -> str:
    """Write the line, and only then redact it, so that nothing slips past in a nested value."""
    return redact(msgspec.json.encode(event, enc_hook=str).decode())


_SHARED: Final[list[Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    structlog.processors.format_exc_info,
]


def json_formatter() -> logging.Formatter:
    """Return the formatter that gives records of the standard library our form."""

    def add_logger_name(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["logger"] = event["_record"].name
        return event

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_SHARED, add_logger_name],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(serializer=_dumps),
        ],
    )


def configure(level: str) -> None:
    """Set up structlog for our own events, which go round the standard library for speed."""
    structlog.configure(
        processors=[*_SHARED, structlog.processors.JSONRenderer(serializer=_dumps)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.__stderr__),
        cache_logger_on_first_use=True,
    )
