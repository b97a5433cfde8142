"""``manage.py --env-file``: a file that systemd reads, read in the same way."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from infra_service.lib.commandline import environment_files
from infra_service.lib.commandline.environment_files import EnvironmentFileError
from tests.support.installation import ROOT

CA = "postgres://infra:pw@db:5432/infra?sslmode=verify-full&sslrootcert=/etc/ssl/ca.pem"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment private to the test, with a single variable."""
    only = {"KEPT": "by the environment"}
    monkeypatch.setattr(os, "environ", only)
    return only


def load(file: Path, text: str) -> dict[str, str]:
    file.write_bytes(text.encode())
    assert environment_files.load_named(["manage.py", "--env-file", str(file), "check"]) == [
        "manage.py",
        "check",
    ]
    return dict(os.environ)


# Each was compared with the answer of systemd 252 (30-systemd-environment-d-generator), which reads
# files with the same parser.
@pytest.mark.parametrize(
    ("line", "value"),
    [
        (f"A={CA}", CA),
        ("A=a;b|c>d<e$F(g)*", "a;b|c>d<e$F(g)*"),
        ("A=two words \t", "two words"),
        (" A = spaced ", "spaced"),
        ('A="x y"', "x y"),
        ("A='it is'tail", "it istail"),
        ("A=\"a\" 'b'", "ab"),
        ('A=a "b"', 'a "b"'),
        ("A=a#b # c", "a#b # c"),
        ('A="x y" # no', "x y# no"),
        ("A=one\\\ntwo", "onetwo"),
        ('A="line1\nline2"', "line1\nline2"),
        (r'A="a\"b\\c\d\$e"', 'a"b\\c\\d$e'),
        (r"A=a\ \b\\", "a b\\"),
        ("A=a\\\t ", "a\t"),
        ("A=", ""),
        ("A=crlf\r", "crlf"),
    ],
)
def test_values_are_parsed(line: str, value: str, tmp_path: Path) -> None:
    text = f"\n# a comment with A=b and 'a quote\n ;another\n{line}\nZ=last\n"

    loaded = load(tmp_path / "env", text)

    assert (loaded["A"], loaded["Z"]) == (value, "last")


def test_a_file_without_a_line_end(tmp_path: Path) -> None:
    assert load(tmp_path / "env", "A=b")["A"] == "b"
    assert "B" not in load(tmp_path / "env", "# nothing")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A=b\nexport B=c\n", 2),
        ("\n\nword\n", 3),
        ("A=b\nB='never ends\n", 2),
        ("=b\n", 1),
        ("1A=b", 1),
    ],
)
def test_line_without_an_assignment_is_rejected(text: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFileError, match=f"env, line {line}: not NAME=VALUE"):
        load(tmp_path / "env", text)
    assert not {"A", "B", "1A", ""} & os.environ.keys()


def test_nul_character_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFileError, match="env, line 2: contains a NUL character"):
        load(tmp_path / "env", "A=b\nB=c\0d\n")


def test_the_environment_wins_and_then_the_last_file(tmp_path: Path) -> None:
    service, owner = tmp_path / "service.env", tmp_path / "owner.env"
    service.write_text("KEPT=no\nDATABASE_URL=postgres://infra\nSECRET_KEY=s\n")
    owner.write_text("DATABASE_URL=postgres://infra_owner\n")
    arguments = ["manage.py", "--env-file", str(service), f"--env-file={owner}", "migrate", "-v0"]

    assert environment_files.load_named(arguments) == ["manage.py", "migrate", "-v0"]

    assert {name: os.environ[name] for name in ("KEPT", "DATABASE_URL", "SECRET_KEY")} == {
        "KEPT": "by the environment",
        "DATABASE_URL": "postgres://infra_owner",
        "SECRET_KEY": "s",
    }


def test_an_option_of_a_command_is_the_commands() -> None:
    given = ["manage.py", "shell", "-c", "--env-file"]

    assert environment_files.load_named(given) == given


@pytest.mark.parametrize("arguments", [["--env-file"], ["--env-file=", "check"]])
def test_missing_file_is_reported(arguments: list[str]) -> None:
    with pytest.raises(EnvironmentFileError, match="--env-file requires a file name"):
        environment_files.load_named(["manage.py", *arguments])


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"A=\xff\n")
    for name, reason in (
        ("missing", "cannot be read: No such file or directory"),
        ("binary", "is not UTF-8 text"),
    ):
        with pytest.raises(EnvironmentFileError, match=f"{name} {reason}"):
            environment_files.load_named(["manage.py", "--env-file", str(tmp_path / name)])


def manage(file: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "--env-file", str(file), *command],
        cwd=ROOT,
        env={},
        check=False,
        capture_output=True,
        text=True,
    )


SECRETS = (
    f"SECRET_KEY={secrets.token_urlsafe(50)}\n"
    "STATE_ENCRYPTION_KEYS=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
)
OF_A_PROXY = "BEHIND_TLS_PROXY=true\nSECURE_SSL_REDIRECT=true\nSECURE_HSTS_SECONDS=31536000\n"


def test_a_parameter_of_a_url_is_no_command_of_a_shell(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text(f"{SECRETS}VAR_DIR={tmp_path}\nDATABASE_URL={CA}\n")
    shown = "from django.conf import settings; print(settings.DATABASES['default']['OPTIONS'])"

    done = manage(file, "shell", "--no-imports", "-c", shown)

    assert done.returncode == 0, done.stderr
    assert "'sslrootcert': '/etc/ssl/ca.pem'" in done.stdout


@pytest.mark.parametrize(
    ("database", "code"), [("", 1), ("DATABASE_URL=sqlite:////nonexistent/db\n", 0)]
)
def test_deployment_must_choose_sqlite_explicitly(database: str, code: int, tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text(f"{SECRETS}{OF_A_PROXY}VAR_DIR={tmp_path}\n{database}")

    done = manage(file, "check", "--deploy")

    assert done.returncode == code
    assert ("(infra_service.E007)" in done.stderr) == bool(code)


def test_unreadable_secret_file_is_reported_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text(f"{SECRETS}VAR_DIR={tmp_path}\nOIDC_CLIENT_SECRET_FILE={tmp_path}/gone\n")

    done = manage(file, "check")

    assert done.returncode == 1
    assert done.stderr == (
        f"OIDC_CLIENT_SECRET_FILE names {tmp_path}/gone, which cannot be read: "
        "No such file or directory. See docs/reference/settings.md.\n"
    )
