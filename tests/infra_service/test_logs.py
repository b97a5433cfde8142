"""Log lines never hold a token."""

import base64
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


@pytest.mark.parametrize("separator", ["_", "%5F", "%5f"])
@pytest.mark.parametrize(
    "text",
    [
        "before\n{}", "x\t{}\n", "'{}'", '"{}"', "\u00e4{}", "my_{}", "{}_old", "{0}{0}",
        "?token={}&x=1", "https://ci:{}@infra.example/", "\x1b[1m{}\x1b[0m",
    ],
)  # fmt: skip
def test_wherever_it_stands(text: str, separator: str, capfd: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger("test").warning(text.format(SECRET.replace("_", separator)))

    assert SECRET.partition("_")[2] not in capfd.readouterr().err


@pytest.mark.parametrize("form", ["Basic {}", "basic  {}", "Basic%20{}", "{{'A': 'Basic {}'}}"])
@pytest.mark.parametrize("name", ["", "u", "us", "ci"])
def test_basic_credentials(form: str, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    encoded = base64.b64encode(f"{name}:{SECRET}".encode()).decode()

    structlog.get_logger("test").warning(form.format(encoded))

    line = capfd.readouterr().err
    assert encoded[10:40] not in line
    assert "[credentials]" in line
