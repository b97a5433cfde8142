"""The walk itself: it detects the errors that a reader would notice."""

import os
from pathlib import Path

import pytest

from tests.docs.walk import DOCUMENTS, ROOT, Shell, Walk, matches, steps


def walk(tmp_path: Path, text: str, **words: str) -> int:
    document = tmp_path / "document.md"
    document.write_text(text)
    return Walk(tmp_path, {"PATH": os.environ["PATH"]}, words).through(document)


def console(*lines: str) -> str:
    return "\n".join(["Some text.", "", "```console", *lines, "```", ""])


def test_variables_directories_and_files_last(tmp_path: Path) -> None:
    text = console("$ mkdir here && cd here", "$ NAME=ada") + "```toml\n# names.toml\na = 1\n```\n"
    text += console("$ echo $NAME; grep -c . names.toml", "ada", "2")

    assert walk(tmp_path, text) == 4
    assert (tmp_path / "here" / "names.toml").read_text() == "# names.toml\na = 1\n"


@pytest.mark.parametrize(
    "lines",
    [
        ("$ false",),
        ("$ echo b", "a"),
        ("$ echo a",),
        ("$ true", "a"),
        ("$ echo a; echo b", "a"),
        # The documented failure does not occur.
        ("$ echo Error: no", "Error: no"),
    ],
)
def test_unexpected_output_fails(tmp_path: Path, lines: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError, match=r"document\.md:4: "):
        walk(tmp_path, console(*lines))


def test_expected_error_passes(tmp_path: Path) -> None:
    assert walk(tmp_path, console("$ echo Error: no >&2; false", "Error: no")) == 1


def test_words_go_both_ways(tmp_path: Path) -> None:
    address = "http://127.0.0.1:8000"
    text = console(f"$ echo {address}/ | tee seen", f"{address}/")
    document = tmp_path / "document.md"
    document.write_text(text)

    Walk(tmp_path, {"PATH": os.environ["PATH"]}, {address: "http://[::1]:1"}).through(document)

    assert (tmp_path / "seen").read_text() == "http://[::1]:1/\n"


def test_command_of_several_lines_is_run() -> None:
    (step,) = steps(console("$ curl -d '{", '  "a": 1}\' \\', "    there", "{}"))

    assert (step.command, step.output) == ("curl -d '{\n  \"a\": 1}' \\\n    there", ["{}"])


def test_endless_command_is_stopped(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"PATH": os.environ["PATH"]}, timeout=1)
    try:
        with pytest.raises(AssertionError, match="took too long"):
            shell.run("sleep 60")
    finally:
        shell.close()


@pytest.mark.parametrize(
    ("documented", "same"),
    [
        (["a", "b"], True),
        (["a", "", "b"], True),
        (["…"], True),
        (["a", "…"], True),
        (["a", "…", "b"], True),
        (["…a", "b…"], True),
        (["a"], False),
        (["…", "a"], False),
        (["a…b"], False),
        ([], False),
    ],
)
def test_lines_are_compared(documented: list[str], same: bool) -> None:
    assert matches(documented, ["a", "b"]) is same


def test_figures_may_be_examples() -> None:
    assert matches(["1.5 s, 20 rows"], ["0.25 s, 3 rows"], any_figures=True)
    assert not matches(["1.5 s, 20 rows"], ["0.25 s, 3 columns"], any_figures=True)
    assert not matches(["20 rows"], ["3 rows"])


def test_commands_are_typed_consistently() -> None:
    """Commands work after ``make run``, or in a container, which has no virtual environment."""
    other = [
        f"{document.relative_to(ROOT)}:{step.line}"
        for document in DOCUMENTS
        for step in steps(document.read_text())
        if "manage.py" in step.command
        if not step.command.startswith(("docker compose", "kubectl"))
        if ".venv/bin/python manage.py" not in step.command
    ]

    assert not other, "\n".join(other)


def test_no_command_is_passed_over() -> None:
    """Each line in the form of a command is executed by a walk."""
    passed_over = []
    for document in DOCUMENTS:
        text = document.read_text()
        run = {step.line for step in steps(text) if step.command}
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("$ ") and number not in run:
                passed_over.append(f"{document.relative_to(ROOT)}:{number}")

    assert not passed_over, "\n".join(passed_over)
