"""Settings from mounted files, as operators and secret stores write them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from infra_service.lib.environment import Environment, MountedSecrets


class Env(Environment):
    ENVIRON = MountedSecrets(cache=False)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_line_end_of_a_file_is_no_part_of_the_value(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys"
    file.write_bytes(f"one,two{end}".encode())
    monkeypatch.setenv("SOME_KEYS_FILE", str(file))
    monkeypatch.setenv("SOME_KEYS", "not this")

    assert Env().parts("SOME_KEYS") == ["one", "two"]


def test_without_a_file_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEYS", "three")

    assert Env().str("SOME_KEYS") == "three"
    assert Env().str("NOT_SET", default="nothing") == "nothing"


def test_a_file_that_is_not_there_is_no_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "missing"
    monkeypatch.setenv("SOME_KEYS_FILE", str(file))

    with pytest.raises(ImproperlyConfigured) as refused:
        Env().str("SOME_KEYS", default="nothing")

    message = f"SOME_KEYS_FILE names {file}, which cannot be read: No such file or directory"
    assert str(refused.value) == message


def test_binary_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"\xff\xfe")
    monkeypatch.setenv("SOME_KEYS_FILE", str(file))

    with pytest.raises(ImproperlyConfigured, match="keys, which is not UTF-8 text"):
        Env().str("SOME_KEYS")


def test_a_unit_reads_its_own_copy_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``LoadCredential=infra-service.SOME_KEYS``, which needs no rights on the file."""
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "infra-service.SOME_KEYS").write_text("one,two\n")
    (tmp_path / "other").write_text("three")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    monkeypatch.setenv("SOME_KEYS_FILE", "/nonexistent/infra-service.SOME_KEYS")
    monkeypatch.setenv("OTHER_KEYS_FILE", str(tmp_path / "other"))

    assert Env().parts("SOME_KEYS") == ["one", "two"]
    assert Env().str("OTHER_KEYS") == "three"


def test_a_credential_belongs_to_a_single_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("one")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("SOME_KEYS_FILE", "/nonexistent/a/key")
    monkeypatch.setenv("SAME_KEYS_FILE", "/nonexistent/a/key")
    assert Env().str("SOME_KEYS") == "one"

    monkeypatch.setenv("OTHER_KEYS_FILE", "/nonexistent/b/key")
    with pytest.raises(ImproperlyConfigured, match="SOME_KEYS_FILE and OTHER_KEYS_FILE name files"):
        Env().str("SOME_KEYS")


def test_the_url_of_a_database_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_URL", "")

    with pytest.raises(ImproperlyConfigured, match="SOME_URL is empty"):
        Env().db_url("SOME_URL", default="sqlite://:memory:")
    assert Env().db_url("NOT_SET", default="sqlite://:memory:")["NAME"] == ":memory:"


@pytest.mark.parametrize(
    "url",
    ["postgres://u:Hunter2/x@y/db", "postgres//u:Hunter2@h/db", "Hunter2", "http://Hunter2@h/db"],
)
def test_a_malformed_url_of_a_database_is_not_shown(
    url: str, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setenv("SOME_URL", url)

    with pytest.raises(ImproperlyConfigured, match="SOME_URL must have the form") as refused:
        Env().db_url("SOME_URL")
    assert "Hunter2" not in str(refused.value)
    assert not list(recwarn)


@pytest.mark.parametrize(
    ("value", "parts"),
    [("a", ["a"]), ("a, b ,\tc", ["a", "b", "c"]), ("a,, b,", ["a", "b"]), ("", [])],
)
def test_list_items_are_stripped(
    value: str, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_HOSTS", value)

    assert Env().parts("SOME_HOSTS", default="other") == parts


def test_unset_parts_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Env().parts("NOT_SET", default="a,b") == ["a", "b"]
    with pytest.raises(ImproperlyConfigured, match="NOT_SET"):
        Env().parts("NOT_SET")


@pytest.mark.parametrize(("value", "days"), [("0", 0), ("90", 90), (" 700000\n", 700_000)])
def test_days_are_parsed(value: str, days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_DAYS", value)

    assert Env().days("SOME_DAYS", default=1) == days
    assert Env().days("NOT_SET", default=1) == 1
    assert (timezone.now() - dt.timedelta(days=days)).year >= 1


@pytest.mark.parametrize("value", ["-1", "700001", "1000000000", "1.5", "a week", "", "٩٠"])
def test_invalid_days_are_rejected(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_DAYS", value)

    with pytest.raises(ImproperlyConfigured, match="SOME_DAYS is not a number of days from 0 to"):
        Env().days("SOME_DAYS", default=1)


@pytest.mark.parametrize("value", ["True", "on", "1", " yes\n"])
def test_booleans_are_parsed(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SWITCH", value)
    monkeypatch.setenv("OTHER_SWITCH", "No")

    assert Env().bool("SOME_SWITCH", default=False) is True
    assert Env().bool("OTHER_SWITCH", default=True) is False


@pytest.mark.parametrize(
    ("kind", "value", "form"),
    [
        ("bool", "maybe", "true or false"),
        ("bool", "", "true or false"),
        ("int", "ten", "a whole number of at least 0"),
        ("int", "1.5", "a whole number of at least 0"),
        ("int", "-1", "a whole number of at least 0"),
        ("float", "fast", "a number of at least 0"),
        ("float", "-0.1", "a number of at least 0"),
        ("float", "nan", "a number of at least 0"),
        ("float", "inf", "a number of at least 0"),
    ],
)
def test_values_of_another_type_are_rejected(
    kind: str, value: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SETTING", value)

    with pytest.raises(ImproperlyConfigured) as refused:
        getattr(Env(), kind)("SOME_SETTING", default=1)

    assert str(refused.value) == f"SOME_SETTING must be {form}"
    assert getattr(Env(), kind)("NOT_SET", default=1) == 1


def test_invalid_networks_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_NETWORKS", "10.0.0.0/8,10.0.0.0/33")

    with pytest.raises(ImproperlyConfigured, match=r"SOME_NETWORKS: '10\.0\.0\.0/33' does not"):
        Env().networks("SOME_NETWORKS", default="")


def test_a_secret_may_begin_with_a_dollar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "$ecret")

    assert Env().str("SOME_SECRET") == "$ecret"
