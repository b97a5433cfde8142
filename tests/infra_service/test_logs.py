"""Log lines never hold a token."""

import base64
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from django.core.exceptions import ImproperlyConfigured

from apikeys import tokens
from apikeys.tokens import TokenKind
from infra_service import logs
from tests.support.full_disk import run_without_log
from tests.support.installation import ROOT

SECRET = tokens.generate(TokenKind.SERVICE)


def test_own_events_are_json_lines(capfd: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger("test").warning(f"saw {SECRET}", nested={"deep": [SECRET]}, other=object)

    line = capfd.readouterr().err
    assert SECRET not in line
    assert json.loads(line)["event"] == "saw [token]"
    assert json.loads(line)["nested"] == {"deep": ["[token]"]}


def test_full_disk_of_the_log_fails_no_request() -> None:
    code = (
        "import structlog; from infra_service import logs; logs.configure('INFO')\n"
        "for _ in range(1000): structlog.get_logger().info('event')\n"
        "print('continues')"
    )

    done = run_without_log(code)

    assert done.stdout == "continues\n"


def test_tracebacks_are_logged_without_secrets(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        int(SECRET)
    except ValueError:
        structlog.get_logger("test").exception("failed")

    event = json.loads(capfd.readouterr().err)
    assert "ValueError: invalid literal for int() with base 10: '[token]'" in event["exception"]


def test_events_of_the_standard_library_are_json_lines() -> None:
    formatter = logs.formatter()
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
def test_basic_credentials_are_redacted(
    form: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    encoded = base64.b64encode(f"{name}:{SECRET}".encode()).decode()

    structlog.get_logger("test").warning(form.format(encoded))

    line = capfd.readouterr().err
    assert encoded[10:40] not in line
    assert "[credentials]" in line


@pytest.fixture
def for_people(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LOG_FORMAT", "text")
    configured = structlog.get_config()
    logs.configure("INFO")
    yield
    structlog.configure(**configured)


@pytest.mark.usefixtures("for_people")
def test_text_line_is_short(capfd: pytest.CaptureFixture[str]) -> None:
    log = structlog.get_logger("test")
    request = {"method": "POST", "path": "/api/v1/states", "status": 200, "duration_ms": 9.4}
    log.info("request", **request, user="operator", queries=3)
    log.info("request", **{**request, "status": 423}, reason="STATE_LOCKED")
    log.warning("rate_limits_unavailable", uncounted_seconds=5)

    lines = [line.split(" ", 1) for line in capfd.readouterr().err.splitlines()]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", time) for time, _line in lines)
    assert [line for _time, line in lines] == [
        "POST /api/v1/states 200 9 ms operator",
        "POST /api/v1/states 423 9 ms STATE_LOCKED",
        "warning rate_limits_unavailable uncounted_seconds=5",
    ]


@pytest.mark.usefixtures("for_people")
def test_a_line_for_people_holds_no_secret_and_no_control_character(
    capfd: pytest.CaptureFixture[str],
) -> None:
    hostile = f"a\x1b[2J\n\r\x9b\u202e{SECRET}"
    log = structlog.get_logger("test")
    log.info("request", method="GET", path=f"/{hostile}", status=404, duration_ms=1)
    log.warning(hostile, **{"a\nb": hostile})
    try:
        raise ValueError(hostile)  # noqa: TRY301 - as a fault of ours would
    except ValueError:
        log.exception("failed")
    record = logging.LogRecord("django.test", logging.ERROR, "", 0, "%s", (hostile,), None)

    written = capfd.readouterr().err
    foreign = logs.formatter().format(record)
    assert SECRET not in written + foreign
    assert r"a\x1b[2J\n\r\x9b\u202e[token]" in foreign
    assert [c for c in written + foreign if not c.isprintable() and c != "\n"] == []
    assert "\n  Traceback (most recent call last):\n" in written
    assert all(re.match(r"\d\d:\d\d:\d\d |  ", line) for line in written.splitlines())


def test_lines_are_json_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("django.test", logging.ERROR, "", 0, "said", (), None)
    monkeypatch.delenv("LOG_FORMAT", raising=False)
    assert json.loads(logs.formatter().format(record))["event"] == "said"

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert logs.formatter().format(record).endswith("error said logger=django.test")

    monkeypatch.setenv("LOG_FORMAT", "json")
    assert json.loads(logs.formatter().format(record))["event"] == "said"


def test_an_unknown_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_FORMAT", "JSON")
    with pytest.raises(ImproperlyConfigured, match="LOG_FORMAT"):
        logs.formatter()


def test_an_unknown_form_is_named(tmp_path: Path) -> None:
    environment = {**os.environ, "LOG_FORMAT": "JSON", "VAR_DIR": str(tmp_path)}
    for settings in ("infra_service.settings", "infra_service.agent.settings"):
        done = subprocess.run(
            [sys.executable, "manage.py", "check"], cwd=ROOT, capture_output=True, text=True,
            env={**environment, "DJANGO_SETTINGS_MODULE": settings},
            check=False, timeout=60,
        )  # fmt: skip
        assert done.stderr == (
            "LOG_FORMAT must be json, text or empty. See docs/reference/settings.md.\n"
        )


def test_half_a_surrogate_pair_is_escaped(capfd: pytest.CaptureFixture[str]) -> None:
    """As in the error for a path that is not UTF-8."""
    structlog.get_logger("test").error("failed", error=f"a\udcff {SECRET}")

    assert json.loads(capfd.readouterr().err)["error"] == "a\udcff [token]"


def test_severities_are_checked() -> None:
    assert logs.minimum_severity("debug") == "DEBUG"
    with pytest.raises(ImproperlyConfigured, match="LOG_LEVEL must be DEBUG, INFO, WARNING, ERROR"):
        logs.minimum_severity("loud")
