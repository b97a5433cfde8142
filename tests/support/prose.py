"""Check how plain the project's English is: ``python -m tests.support.prose [FILE...]``.

Counts pronouns and general verbs that stand where a noun or a term of the field belongs, per 1,000
words of the documents, the docstrings and the comments of the whole tree: packages, tools and
tests, without migrations. Files on the command line are measured one by one, without a limit.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
#: Occurrences per 1,000 words, at most.
LIMITS: Final = {"documents": 8.0, "docstrings": 8.0, "comments": 8.0}
#: Share of headings that may start with a question word. No module docstring may.
HEADINGS: Final = 0.03

_MARKS: Final = re.compile(
    r"\b(?:what|who|whoever|whom|whose|one|none|nobody|somebody|others"
    r"|tell|tells|told|say|says|said)\b",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(r"(?:what|who|whom|whose|how|where|which|when)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_BLOCK: Final = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_HEADING: Final = re.compile(r"^#+ (.*)", re.MULTILINE)
_CODE: Final = re.compile(r"`[^`]*`|\(\S+\)")
_DIRECTIVE: Final = re.compile(r"#\s*(?:noqa|type:|fmt:|pragma|!)")


def main() -> None:
    """Print the rates; exit with an error if one exceeds its limit."""
    if files := sys.argv[1:]:
        for name in files:
            print(name, ", ".join(f"{k} {rate(c):.1f}" for k, c in measure([Path(name)]).items()))  # noqa: T201 - a command
        return
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "deploy/client/infra"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [n for n in listed.stdout.split() if "/migrations/" not in n]
    counts = measure([ROOT / name for name in names])
    problems = [
        f"{kind}: {rate(counts[kind]):.1f} per 1,000 words, and at most {limit} are allowed"
        for kind, limit in LIMITS.items()
        if rate(counts[kind]) > limit
    ]
    documents, docstrings = counts["documents"], counts["docstrings"]
    if documents["questions"] > HEADINGS * documents["headings"]:
        problems.append(f"{documents['questions']} headings start with a question word")
    if docstrings["questions"]:
        problems.append(f"{docstrings['questions']} module docstrings start with a question word")
    if problems:
        sys.exit("\n".join(problems))


def measure(paths: list[Path]) -> dict[str, Counter[str]]:
    """Return words, marks, headings and questions of the files by the kind of text."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for path in paths:
        if not path.is_file():
            continue
        text = path.read_text()
        if path.suffix == ".md":
            text = _BLOCK.sub("", text)
            headings = _HEADING.findall(text)
            counts["documents"]["headings"] += len(headings)
            counts["documents"]["questions"] += sum(map(bool, map(_QUESTION.match, headings)))
            _count(counts["documents"], _CODE.sub(" ", text))
        else:
            module = ast.parse(text)
            for node in ast.walk(module):
                if isinstance(
                    node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
                ):
                    _count(counts["docstrings"], ast.get_docstring(node) or "")
            is_question = _QUESTION.match(ast.get_docstring(module) or "")
            counts["docstrings"]["questions"] += bool(is_question)
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string):
                    _count(counts["comments"], token.string)
    return counts


def rate(counts: Counter[str]) -> float:
    """Return the marks per 1,000 words."""
    return 1000 * counts["marks"] / max(1, counts["words"])


def _count(counts: Counter[str], text: str) -> None:
    counts["words"] += len(_WORD.findall(text))
    counts["marks"] += len(_MARKS.findall(text))


if __name__ == "__main__":
    main()
