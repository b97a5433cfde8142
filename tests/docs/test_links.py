"""Every link within the documents has a target, and every document is in the index."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.walk import DOCUMENTS, ROOT
from tools.site.navigation import sections

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def links(document: Path) -> Iterator[tuple[Path, str]]:
    """Yield the file and the heading that each relative link names."""
    for link in _LINK.findall(_CODE.sub("", document.read_text())):
        if "://" not in link:
            path, _, heading = link.partition("#")
            yield (document.parent / path).resolve() if path else document, heading


def headings(document: Path) -> set[str]:
    """Return the anchors of a document, in the form of GitHub and GitLab."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in found}


def test_links_are_valid() -> None:
    anchors = functools.cache(headings)
    broken = [
        f"{document.relative_to(ROOT)}: {target.relative_to(ROOT)}#{heading}"
        for document in DOCUMENTS
        for target, heading in links(document)
        if not target.exists() or (heading and heading not in anchors(target))
    ]

    assert not broken, "\n".join(broken)


def listed() -> set[Path]:
    """Return the documents that the index and the site's navigation list."""
    kinds = ("tutorial", "how-to", "reference", "explanation")
    return {path for path in DOCUMENTS if path.parent.name in kinds}


def test_the_index_is_complete() -> None:
    index = ROOT / "docs" / "README.md"
    there = {path for path, _ in links(index)}

    assert listed() - there == set()


def test_the_navigation_of_the_site_is_complete() -> None:
    pages = [page for _, pages in sections(ROOT / "mkdocs.yml") for page in pages]

    assert len(pages) == len(set(pages))
    assert listed() - {ROOT / "docs" / page for page in pages} == set()
