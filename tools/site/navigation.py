"""Read the navigation of ``mkdocs.yml``, and generate ``llms.txt`` (https://llmstxt.org)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

_TITLE_AND_TEXT: Final = re.compile(r"^# (.+)$\s+((?:^[A-Za-z`*\[].*\n)+)", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


class _Loader(yaml.SafeLoader):
    """A YAML loader that ignores the Python objects in Zensical's options."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def sections(config: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each section's title and the paths of its pages; the home page has no title."""
    options: dict[str, Any] = yaml.load(config.read_text(), _Loader)
    for entry in options["nav"]:
        yield from [("", [entry])] if isinstance(entry, str) else entry.items()


def llms_txt(config: Path, docs: Path) -> str:
    """Return a Markdown list of all pages, with the first sentence of each page."""
    parts = []
    for title, pages in sections(config):
        lines = [_line(docs, page) for page in pages]
        if title:
            parts.append(f"## {title}\n\n" + "\n".join(lines))
        else:
            name, text = _title_and_sentence(docs / pages[0])
            parts.append(f"# {name}\n\n> {text}")
    return "\n\n".join(parts) + "\n"


def _line(docs: Path, page: str) -> str:
    title, sentence = _title_and_sentence(docs / page)
    return f"- [{title}]({page})" + (f": {sentence}" if sentence else "")


def _title_and_sentence(page: Path) -> tuple[str, str]:
    text = page.read_text()
    found = _TITLE_AND_TEXT.search(text)
    if found is None or found.start():
        return text.partition("\n")[0].removeprefix("# "), ""
    paragraph = " ".join(_LINK.sub(r"\1", found[2]).split())
    return found[1], re.split(r"(?<=[.:]) ", paragraph)[0]
