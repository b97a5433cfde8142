"""Log lines never hold a token."""

import json
import logging
import sys
from typing import Any

import pytest
import structlog

from apikeys import tokens
from apikeys.tokens import TokenKind
from infra_service import logs

SECRET = tokens.generate(TokenKind.SERVICE)


def test_our_events(capfd: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger("test").warning(f"saw {SECRET}", nested={"deep": [SECRET]}, other=object)

    line = capfd.readouterr().err
    assert SECRET not in line
    assert json.loads(line)["event"] == "saw [token]"
    assert json.loads(line)["nested"] == {"deep": ["[token]"]}


def test_tracebacks(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        int(SECRET)
    except ValueError:
        structlog.get_logger("test").exception("failed")

    event = json.loads(capfd.readouterr().err)
    assert "ValueError: invalid literal for int() with base 10: '[token]'" in event["exception"]


def test_the_standard_librarys_events() -> None:
    formatter = logs.json_formatter()
    try:
        int(SECRET)
    except ValueError:
        record = logging.LogRecord(
            "django.test", logging.ERROR, "", 0, "for %s", (SECRET,), sys.exc_info()
        )

    event: dict[str, Any] = json.loads(formatter.format(record))

    assert (event["event"], event["logger"], event["level"]) == (
        "for [token]", "django.test", "error",
    )  # fmt: skip
    assert "ValueError: invalid literal for int() with base 10: '[token]'" in event["exception"]


def test_redact_leaves_the_rest() -> None:
    assert logs.redact(f"a {SECRET}, isp_short") == "a [token], isp_short"
