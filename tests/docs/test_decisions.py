"""The decision records in docs/adr are numbered 1, 2, 3 … and share a form."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))
#: Words of a record: a page with its tables.
MOST_WORDS = 540


def test_numbers_are_linear() -> None:
    names = [int(path.name[:4]) for path in DECISIONS]
    titles = [re.match(r"# (\d+)\. ", path.read_text()) for path in DECISIONS]

    assert names == list(range(1, len(DECISIONS) + 1))
    assert [title and int(title[1]) for title in titles] == names


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name[:4])
def test_decisions_have_the_required_form(path: Path) -> None:
    text = path.read_text()
    _, status, *_ = text.split("\n\n")
    superseded = re.fullmatch(
        r"Status: Superseded by \[ADR \d+\]\((\d{4}-[a-z0-9-]+\.md)\)", status
    )

    if superseded:
        # Reduced to a paragraph below title and status.
        assert text.count("\n\n") == 2
        assert f"]({path.name})" in (path.parent / superseded[1]).read_text()
    else:
        assert re.match(r"Status: Accepted\b", status)
        sections = re.findall(r"^#+ (.+)$", text, re.MULTILINE)[1:]
        assert sections == ["Context", "Decision", "Consequences"]
    assert len(text.split()) <= MOST_WORDS
