"""The decisions in docs/adr are numbered 1, 2, 3 …."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))


def test_numbers_are_linear() -> None:
    names = [int(path.name[:4]) for path in DECISIONS]
    titles = [re.match(r"# (\d+)\. ", path.read_text()) for path in DECISIONS]

    assert names == list(range(1, len(DECISIONS) + 1))
    assert [title and int(title[1]) for title in titles] == names
