"""Sign in and out; the token in the keyring or a private file, and nowhere else."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.client.conftest import SomeState
from tests.client.front import Front, answer, running_front, silent
from tests.client.running import BARE, Client
from tests.e2e.backend import document
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT

#: Stands in for a keyring program: it stores a line of standard input in a file.
PROGRAM = """#!{python}
import pathlib, sys
file, words, typed = pathlib.Path({file!r}), sys.argv[1:], sys.stdin.read()
pathlib.Path({log!r}).open("a").write(" ".join(words) + "\\n")
if words == ["-i"]:  # macOS: a command on standard input
    *words, typed = typed.split()
if words[0] in ("store", "add-generic-password"):
    file.write_text(typed)
elif words[0] in ("lookup", "find-generic-password"):
    sys.exit(print(file.read_text()) if file.exists() else 44)
else:
    file.unlink()
"""


@pytest.fixture
def person(tmp_path: Path) -> Client:
    """A client that is not signed in."""
    return Client(tmp_path)


def stored(person: Client) -> Path:
    return person.home / ".config" / "infra" / "credentials.json"


def test_a_user_without_a_home_directory(tmp_path: Path) -> None:
    person = Client(tmp_path, HOME="~")

    assert "INFRA_URL and INFRA_TOKEN" in person.run("states", code=3).stderr


def test_a_token_on_standard_input(
    person: Client, live: LiveServer, tokens: dict[str, str]
) -> None:
    assert f"infra login {live.url}" not in person.run("states", code=3).stderr

    done = person.run("login", f"{live.url}/", "--token-stdin", stdin=tokens["admin"] + "\n")

    assert f"Signed in to {live.url} as operator@example.com" in done.stdout
    assert stat.S_IMODE(stored(person).stat().st_mode) == 0o600
    assert stat.S_IMODE(stored(person).parent.stat().st_mode) == 0o700
    assert [file.name for file in stored(person).parent.iterdir()] == [stored(person).name]
    assert tokens["admin"] not in done.stdout + done.stderr
    person.run("states")
    assert person.run("token", "print").stdout == tokens["admin"] + "\n"
    shown = person.run("token").stdout
    assert tokens["admin"] not in shown
    assert "state:admin state:read state:write" in shown
    person.run("logout")
    assert not stored(person).exists()
    person.run("states", code=3)


def test_a_token_at_the_prompt_is_not_echoed(
    person: Client, live: LiveServer, tokens: dict[str, str]
) -> None:
    shown = person.on_terminal("login", live.url, typed=tokens["admin"] + "\n")

    assert f"Token for {live.url}: " in shown
    assert "Signed in to " in shown
    assert tokens["admin"] not in shown
    assert "--token-stdin" in person.run("login", live.url, code=2).stderr


def test_ctrl_d_at_the_prompt(person: Client) -> None:
    shown = person.on_terminal("login", "http://127.0.0.1:9", typed="\x04", code=3)

    assert "The token is malformed" in shown
    assert "Traceback" not in shown


def test_a_file_that_others_can_read(person: Client) -> None:
    file = stored(person)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"url": "http://127.0.0.1:9", "token": f"isp_{'0' * 38}"}))
    file.chmod(0o640)

    assert f"chmod 600 {file}" in person.run("token", "print").stderr
    file.chmod(0o600)
    assert person.run("token", "print").stderr == ""


def test_ctrl_c_at_the_prompt(person: Client, live: LiveServer) -> None:
    shown = person.on_terminal("login", live.url, typed="\x03", code=-signal.SIGINT)

    assert "Traceback" not in shown
    assert not stored(person).exists()


def test_logout_names_a_file_that_cannot_be_removed(
    person: Client, live: LiveServer, tokens: dict[str, str]
) -> None:
    person.run("login", live.url, "--token-stdin", stdin=tokens["admin"])
    file = stored(person)
    file.parent.chmod(0o500)
    as_user = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []

    done = subprocess.run(
        [*as_user, *BARE, "logout"],
        env=person.environment | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=MAX_WAIT,
        check=False,
    )

    assert (done.returncode, file.exists()) == (1, True)
    assert f"Cannot remove {file}: Permission denied." in done.stderr


@pytest.mark.parametrize("program", ["secret-tool", "security"])
def test_a_keyring_stores_the_token(
    person: Client, live: LiveServer, tokens: dict[str, str], program: str
) -> None:
    ring, log = person.home / "ring", person.home / "log"
    keyring = person.home / "bin" / program
    keyring.parent.mkdir()
    keyring.write_text(PROGRAM.format(python=sys.executable, file=str(ring), log=str(log)))
    keyring.chmod(0o700)

    done = person.run("login", live.url, "--token-stdin", stdin=tokens["admin"])

    assert "token in the keyring" in done.stdout
    assert json.loads(stored(person).read_text()) == {"url": live.url}
    assert ring.read_text() == tokens["admin"]
    person.run("states")
    # Another user of the machine sees arguments.
    assert tokens["admin"] not in log.read_text()
    person.run("logout")
    assert not ring.exists()
    person.run("login", live.url, "--token-stdin", "--no-keyring", stdin=tokens["admin"])
    assert not ring.exists()


@pytest.mark.skipif(
    not all(map(shutil.which, ("secret-tool", "gnome-keyring-daemon", "dbus-run-session"))),
    reason="needs libsecret-tools, gnome-keyring and dbus",
)
def test_the_keyring_of_gnome(person: Client, live: LiveServer, tokens: dict[str, str]) -> None:
    person.environment["PATH"] = os.environ["PATH"]
    (person.home / "token").write_text(tokens["admin"])
    infra = " ".join(BARE)
    script = f"""set -e
        printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null
        {infra} login {live.url} --token-stdin <token
        {infra} states
        {infra} logout
        ! {infra} states"""

    done = subprocess.run(
        ["dbus-run-session", "--", "bash", "-c", script],
        cwd=person.home,
        env=person.environment,
        capture_output=True,
        text=True,
        timeout=MAX_WAIT,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "token in the keyring" in done.stdout


def test_a_keyring_that_does_not_work(
    person: Client, live: LiveServer, tokens: dict[str, str]
) -> None:
    keyring = person.home / "bin" / "secret-tool"
    keyring.parent.mkdir()
    keyring.write_text("#!/bin/sh\nexit 1\n")
    keyring.chmod(0o700)

    person.run("login", live.url, "--token-stdin", stdin=tokens["admin"])

    assert json.loads(stored(person).read_text())["token"] == tokens["admin"]
    person.run("states")


def test_a_refused_token_is_not_stored(person: Client, live: LiveServer) -> None:
    unknown = "isp_" + "0" * 38

    done = person.run("login", live.url, "--token-stdin", stdin=unknown, code=3)

    assert "revoked or unknown" in done.stderr
    assert not stored(person).exists()


@pytest.mark.parametrize("text", ["", "password", "isp_" + "a" * 30 + "\r\nHost: x", "isp_é" * 9])
def test_a_malformed_token_is_not_shown(person: Client, live: LiveServer, text: str) -> None:
    done = person.run("login", live.url, "--token-stdin", stdin=text, code=3)

    assert done.stderr.startswith("infra: The token is malformed")
    assert not text or text not in done.stderr
    signed_in = Client(person.home, live.url, text)
    assert not text or text not in signed_in.run("states", code=3).stderr


@pytest.mark.parametrize(
    "url",
    [
        "infra.example",
        "ftp://infra.example",
        "https://ada:secret@infra.example",
        "https://",
        "https://infra.example?token=secret",
        "https://infra.example#secret",
        "https://infra.example:x",
        'https://infra.example/"secret',
        "https://infra.example/\x1b[31m",
    ],
)
def test_a_malformed_address_is_not_shown(person: Client, url: str) -> None:
    done = person.run("login", url, "--token-stdin", stdin="x", code=2)

    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr
    assert "\x1b" not in done.stderr


def test_the_environment_wins(
    person: Client, live: LiveServer, tokens: dict[str, str], front: Front
) -> None:
    person.run("login", live.url, "--token-stdin", stdin=tokens["admin"])
    person.environment["INFRA_TOKEN"] = tokens["clusters"]
    person.run("states", code=3)
    del person.environment["INFRA_TOKEN"]
    # The stored token is for its own service only.
    person.environment["INFRA_URL"] = front.url

    assert f"Not signed in to {front.url}" in person.run("states", code=3).stderr

    assert front.requests == []
    person.environment["INFRA_TOKEN"] = tokens["admin"]
    person.run("states")
    assert set(front.lines) == {"GET /api/v1/states"}


@pytest.mark.parametrize("content", ["", "[", "[]", '{"url": 1}', '"text"'])
def test_a_damaged_file(person: Client, content: str) -> None:
    stored(person).parent.mkdir(parents=True)
    stored(person).write_text(content)

    shown = person.run("states", code=3).stderr

    assert re.search("credentials.json is (damaged|not JSON)", shown)


@pytest.mark.both
def test_an_expired_token(tmp_path: Path, live: LiveServer, tokens: dict[str, str]) -> None:
    client = Client(tmp_path, live.url, tokens["key"])
    minting = ("token", "mint", "--name", "brief", "--scopes", "state:read", "--ttl")
    minted = client.run(*minting, "1").stdout.strip()
    brief = Client(tmp_path, live.url, minted)
    time.sleep(1.1)

    done = brief.run("states", code=3)

    assert "expired" in done.stderr
    assert "infra login" in done.stderr


def test_a_key_is_created_rotated_and_revoked(
    tmp_path: Path, live: LiveServer, tokens: dict[str, str]
) -> None:
    client = Client(tmp_path, live.url, tokens["key"])
    done = client.run("keys", "create", "--name", "deploy", "--scopes", "apikey:read")
    key = Client(tmp_path, live.url, done.stdout.strip())
    key_id = key.json("token")["caller"]["api_key_id"]
    assert f"Created {key_id}." in done.stderr
    assert key_id in client.run("keys", "--limit", "0").stdout

    rotated = client.json("keys", "rotate", key_id)["secret"]

    assert key.run("keys", code=3)
    Client(tmp_path, live.url, rotated).run("keys")
    client.run("keys", "revoke", key_id)
    client.run("keys", "revoke", "key-0", code=4)
    client.run("keys", "revoke", "../../api/v1/states", code=4)
    shown = [item for item in client.json("keys") if item["id"] == key_id]
    assert shown[0]["unusable_reason"] == "REVOKED"


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_a_new_secret_is_written_without_standard_error(
    tmp_path: Path, live: LiveServer, tokens: dict[str, str], redirection: str
) -> None:
    client = Client(tmp_path, live.url, tokens["key"])
    words = ["keys", "create", "--name", redirection, "--scopes", "apikey:read"]

    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *BARE, *words],
        env=client.environment, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0
    assert re.fullmatch(r"isk_\w{38}\n", done.stdout)


def test_a_closed_output_is_refused_before_a_change(
    tmp_path: Path, live: LiveServer, tokens: dict[str, str]
) -> None:
    client = Client(tmp_path, live.url, tokens["key"])
    words = ["keys", "create", "--name", "unseen", "--scopes", "apikey:read"]

    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *BARE, *words],
        env=client.environment, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr == "infra: Standard output is closed. Redirect it to /dev/null.\n"
    assert "unseen" not in client.run("keys", "--limit", "0").stdout


def test_a_full_disk_of_the_output(tmp_path: Path) -> None:
    client = Client(tmp_path, "http://127.0.0.1:9", f"isp_{'0' * 38}")

    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*BARE, "token", "print"],
            env=client.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (
        1, "infra: Cannot write the output: No space left on device.\n",
    )  # fmt: skip


def test_a_full_quota_of_the_output() -> None:
    full = (
        "import errno, runpy, sys\n"
        "class Full(sys.stdout.__class__):\n"
        "    def writelines(self, lines): raise OSError(errno.EDQUOT, 'Disk quota exceeded')\n"
        "sys.stdout = Full(sys.stdout.detach())\n"
        "sys.argv = ['infra', 'completion', 'bash']\n"
        f"runpy.run_path({BARE[-1]!r}, {{}}, '__main__')\n"
    )

    done = subprocess.run([sys.executable, "-c", full], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (
        1, "infra: Cannot write the output: Disk quota exceeded.\n",
    )  # fmt: skip


def test_an_option_may_precede_the_action(tmp_path: Path) -> None:
    token = f"isp_{'0' * 38}"
    client = Client(tmp_path, "http://127.0.0.1:9", token)

    assert json.loads(client.run("token", "--json", "print").stdout) == {"token": token}


def test_the_token_is_no_argument_of_a_process(
    tmp_path: Path, front: Front, tokens: dict[str, str]
) -> None:
    front.script.append(silent(front))
    process = Client(tmp_path, front.url, tokens["admin"]).start("states")
    assert front.arrived.wait(MAX_WAIT)

    arguments = Path(f"/proc/{process.pid}/cmdline").read_text()

    process.kill()
    process.communicate()
    assert "states" in arguments
    assert tokens["admin"] not in arguments


def test_a_token_in_an_error_is_hidden(
    through_front: Client, front: Front, tokens: dict[str, str]
) -> None:
    error = {"error": {"message": f"Bad {tokens['admin']}\x1b[31m\u202e", "details": []}}
    front.script.append(answer("400 Bad", json.dumps(error)))

    shown = through_front.run("states", code=1).stderr

    assert tokens["admin"] not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_plain_connection_to_another_host_is_announced(
    person: Client, tokens: dict[str, str]
) -> None:
    url = "http://infra.invalid"

    shown = person.run("login", url, "--token-stdin", stdin=tokens["admin"], code=6).stderr

    assert f"{url} has no TLS" in shown


def test_a_new_service_replaces_the_old_one(
    person: Client, live: LiveServer, tokens: dict[str, str], state: SomeState
) -> None:
    state.push(document(1))
    with running_front(live) as other:
        for url in (live.url, other.url):
            person.run("login", url, "--token-stdin", stdin=tokens["admin"])
        person.run("show", state.name)
        assert len(other.requests) == 3
