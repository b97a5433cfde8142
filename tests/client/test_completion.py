"""Completion in real shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.client.conftest import SomeState
from tests.client.front import Front, silent
from tests.client.running import BARE, Client
from tests.e2e.backend import document
from tests.support.waiting import MAX_WAIT

_LINE = {
    "bash": 'COMP_WORDS=(infra {line}); COMP_CWORD={last}; _infra; echo "${{COMPREPLY[@]}}"',
    "fish": "complete -C 'infra {line}'",
    # Outside of the line editor, compadd is a function of the test.
    "zsh": 'compadd() {{ shift; print -l -- "$@"; }}; _files() {{ print files }}; '
    "words=(infra {line}); CURRENT={last}+1; _infra",
}


def completed(client: Client, shell: str, *words: str) -> list[str]:
    """Return the values that the shell offers for the last of these words."""
    binary = client.home / "bin" / "infra"
    binary.parent.mkdir(exist_ok=True)
    binary.write_text("#!/bin/sh\nexec " + " ".join(BARE) + ' "$@"\n')
    binary.chmod(0o700)
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not on the PATH")
    quoted = " ".join(word or ("" if shell == "fish" else "''") for word in words)
    script = client.run("completion", shell).stdout
    if shell == "zsh":
        script = script.replace("compdef _infra infra\n", "")
    line = _LINE[shell].format(line=quoted, last=len(words))
    done = subprocess.run(
        [program, "-c", f"{script}\n{line}"],
        env={**client.environment, "PATH": f"{binary.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=MAX_WAIT,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_options_and_states(client: Client, state: SomeState, shell: str) -> None:
    state.push(document(1))

    assert completed(client, shell, "un") == ["unlock", "unfreeze"][:: -1 if shell == "fish" else 1]
    assert state.name in completed(client, shell, "show", state.name[:5])
    assert completed(client, shell, "keys", "ro") == ["rotate"]
    assert completed(client, shell, "states", "--froz") == ["--frozen"]
    assert completed(client, shell, "token", "mint", "--kind", "S") == ["SERVICE"]


def test_files_complete_the_import(client: Client) -> None:
    assert completed(client, "bash", "import", "ter") == []


def test_without_a_service(tmp_path: Path) -> None:
    person = Client(tmp_path)

    assert person.run("_complete", "show", "").stdout == ""
    assert person.run("_complete", "nonsense", "").stdout == ""
    assert "states\n" in person.run("_complete").stdout


def test_a_slow_service_delays_a_shell_by_two_seconds(through_front: Client, front: Front) -> None:
    front.script.append(silent(front))

    assert through_front.run("_complete", "show", "").stdout == ""
    assert len(front.requests) == 1
