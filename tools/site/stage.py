"""Copy the documents into the directory of the site, and adapt their links."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

#: Documents with a different path in the site than in the directory ``docs``.
_MOVED: Final = {
    "README.md": "index.md",
    "docs/README.md": "documents.md",
    "docs/adr": "adr/index.md",
    **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
}
#: Files and directories outside of ``docs`` to which documents link.
_FILES: Final = ("Dockerfile", "compose.yaml", "deploy")
_LINK: Final = re.compile(r"(?s)^```.*?^```$|`[^`\n]*`|(!?\[[^\]]*\])\(([^)\s]+)\)", re.MULTILINE)
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)


def write(root: Path, docs: Path) -> None:
    """Copy the documents of the repository in ``root`` into the directory ``docs``."""
    places = _places(root)
    for source, place in places.items():
        if source.is_file():
            target = docs / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                target.write_text(_relinked(source, places))
            else:
                shutil.copyfile(source, target)
    records = sorted((root / "docs" / "adr").glob("*.md"))
    titles = (_TITLE.findall(record.read_text())[0] for record in records)
    lines = (f"- [{title}]({record.name})" for title, record in zip(titles, records, strict=True))
    (docs / "adr" / "index.md").write_text("# Decision records\n\n" + "\n".join(lines) + "\n")


def _places(root: Path) -> dict[Path, str]:
    """Return the path in the site of each file, and of each directory with an index page."""
    places = {path: str(path.relative_to(root / "docs")) for path in _files(root / "docs")}
    for name in _FILES:
        path = root / name
        files = _files(path) if path.is_dir() else [path]
        places |= {file: str(file.relative_to(root)) for file in files}
    return places | {root / name: place for name, place in _MOVED.items()}


def _files(directory: Path) -> list[Path]:
    """Return the files to publish from the directory, without symbolic links and hidden files."""
    return [
        path
        for path in directory.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and not any(part.startswith(".") for part in path.relative_to(directory).parts)
    ]


def _relinked(source: Path, places: dict[Path, str]) -> str:
    """Return the document with links that match its new path.

    Links to files outside of the site become plain text.
    """

    def link(found: re.Match[str]) -> str:
        label, address = found.groups()
        if label is None or "://" in address or address.startswith("#"):
            return found[0]
        path, hash_, anchor = address.partition("#")
        place = places.get((source.parent / path).resolve())
        if place is None:
            return label[1:-1]
        relative = os.path.relpath(place, Path(places[source]).parent)
        return f"{label}({relative}{hash_}{anchor})"

    return _LINK.sub(link, source.read_text())
