"""Settings from mounted files, as operators and secret stores write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra_service.environment import Environment, MountedSecrets


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

    assert Env().list("SOME_KEYS") == ["one", "two"]


def test_without_a_file_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEYS", "three")

    assert Env().str("SOME_KEYS") == "three"
    assert Env().str("NOT_SET", default="nothing") == "nothing"


def test_a_file_that_is_not_there_is_no_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEYS_FILE", str(tmp_path / "missing"))

    with pytest.raises(FileNotFoundError):
        Env().str("SOME_KEYS", default="nothing")
