"""Walk a document like a reader: write its files, run its commands, compare their output.

In a ```console block, "$ " begins a command (and "# " a command of root), and its output follows.
"…" in a line of output stands for any text, and a line with only "…" for any lines; blank lines do
not count. A command must fail if its documented output says "Error", and succeed otherwise. A block
of another language whose first line is "# NAME" is a file of this name.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.\w+)\n")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Terraform's messages when an operation is slow.
_SLOW = re.compile(r"(Acquiring|Releasing) state lock\.|: Still \w+\.\.\. \[")
_MARK = "-- the command has ended:"


@dataclass
class Step:
    """A file to write, or a command and its output; ``line`` is its position."""

    line: int
    command: str = ""
    output: list[str] = field(default_factory=list)
    file: str = ""
    content: str = ""

    @property
    def fails(self) -> bool:
        return any(re.match(r"(│ )?Error: |curl: \(", line) for line in self.output)


def steps(text: str) -> Iterator[Step]:
    """Yield the steps of a document in order."""
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        language, content = block.groups()
        if language == "console":
            yield from _commands(content, line)
        elif named := _FILE.match(content):
            yield Step(line, file=named[1], content=content)


def _commands(content: str, line: int) -> Iterator[Step]:
    step: Step | None = None
    for number, text in enumerate(content.splitlines(), line):
        if step is not None and not step.output and _is_unfinished(step.command):
            step.command += "\n" + text
        elif text.startswith(("$ ", "# ")):
            if step is not None:
                yield step
            step = Step(number, text[2:])
        else:
            assert step is not None, f"line {number}: output before any command"
            step.output.append(text)
    if step is not None:
        yield step


def _is_unfinished(command: str) -> bool:
    if command.endswith("\\"):
        return True
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return False


class Shell:
    """A bash process, so that variables and directories persist between commands."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], timeout: float = 120
    ) -> None:
        self.timeout = timeout
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> tuple[int, list[str]]:
        """Return the exit code, and the output of both streams without blank lines."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        script = f"{{ {command}\n}} </dev/null\nprintf '\\n%s %s\\n' '{_MARK}' $?\n"
        watch = threading.Timer(self.timeout, self._kill)
        watch.start()
        try:
            self._process.stdin.write(script)
            self._process.stdin.flush()
            printed = []
            for text in self._process.stdout:
                if text.startswith(_MARK):
                    return int(text.split()[-1]), printed
                printed += [text.rstrip()] if text.strip() else []
        finally:
            watch.cancel()
        raise AssertionError("\n".join([f"{command}: ended the shell, or took too long", *printed]))

    def close(self) -> None:
        """Stop the shell and its processes."""
        self._kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)


@dataclass
class Walk:
    """A walk through a document.

    ``words`` maps words of the document to their values in the test, such as an address.
    ``by_hand`` are commands outside of the shell: a function returns their output. With
    ``any_figures`` the printed numbers are examples. ``timeout`` in seconds limits each command.
    """

    directory: Path
    environment: Mapping[str, str]
    words: dict[str, str] = field(default_factory=dict)
    by_hand: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    any_figures: bool = False
    timeout: float = 120
    #: Each command with its output, in words of the document.
    transcript: list[str] = field(default_factory=list)

    def through(self, document: Path) -> int:
        """Execute all steps of the document; return the numbers of files and commands.

        Raises:
            AssertionError: a command failed, or its output differs.
        """
        shell = Shell(self.directory, self.environment, self.timeout)
        done = 0
        try:
            for step in steps(document.read_text()):
                done += 1
                if step.file:
                    _, (where,) = shell.run("pwd -P")
                    file = Path(where) / self._meant(step.file)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(self._meant(step.content))
                else:
                    self._do(step, shell, document)
        finally:
            shell.close()
        return done

    def _do(self, step: Step, shell: Shell, document: Path) -> None:
        if step.command in self.by_hand:
            code, printed = 0, self.by_hand[step.command]().splitlines()
        else:
            code, printed = shell.run(self._meant(step.command))
        printed = self._unchanged_fields(printed)
        self.transcript += [f"$ {step.command}", *printed]
        place = f"{document.name}:{step.line}: {step.command}\n"
        reported = [line.rstrip() for line in step.output]
        shown = "\n".join(["printed:", *printed, "", "documented:", *reported])
        assert (code != 0) == step.fails, f"{place}ended with {code}; {shown}"
        assert matches(reported, printed, any_figures=self.any_figures), place + shown

    def _meant(self, text: str) -> str:
        for reported, meant in self.words.items():
            text = text.replace(reported, meant)
        return text

    def _unchanged_fields(self, printed: list[str]) -> list[str]:
        text = _COLOUR.sub("", "\n".join(printed))
        for reported, meant in self.words.items():
            text = text.replace(meant, reported)
        lines = [line.rstrip() for line in text.splitlines()]
        return [line for line in lines if line and not _SLOW.search(line)]


def matches(reported: list[str], printed: list[str], *, any_figures: bool = False) -> bool:
    """Return whether these lines match the document, with "…" for anything."""
    pattern = ""
    for line in filter(None, reported):
        if line.strip() == "…":
            pattern += r"(?:.*\n)*"
            continue
        text = ".*".join(map(re.escape, line.split("…")))
        if any_figures:
            text = re.sub(r"\d+", lambda _: r"\d+", text)
        pattern += text + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None
