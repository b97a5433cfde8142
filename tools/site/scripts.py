"""Adapt the pages to the service's Content-Security-Policy.

The policy contains ``script-src 'self'; style-src 'self'``.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

#: Only scripts without attributes: ``<script type="application/json">`` contains data.
_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
#: The search inserts its styles as a ``style`` element, which the policy blocks. The policy permits
#: a ``CSSStyleSheet`` object.
_STYLE: Final = re.compile(r'(\w+)\.appendChild\(\w+\("style",\{\},(\w+\.toString\(\))\)\)')
_SHEET: Final = r"(s=>(s.replaceSync(\2),\1.adoptedStyleSheets=[s]))(new CSSStyleSheet)"
_FILES: Final = Path("assets", "javascripts")


def adapt(site: Path) -> None:
    """Move the inline scripts without attributes to files, and adapt the styles of the search.

    Raises:
        ValueError: this version of Zensical inserts the styles of its search differently.
    """
    (bundle,) = (site / _FILES).glob("bundle.*.js")
    text, count = _STYLE.subn(_SHEET, bundle.read_text())
    if count != 1:
        raise ValueError(f"{count} insertions of styles in {bundle.name}, expected 1")
    bundle.write_text(text)
    for page in site.rglob("*.html"):
        to_root = os.path.relpath(site, page.parent)

        def file(found: re.Match[str], to_root: str = to_root) -> str:
            digest = hashlib.sha256(found[1].encode()).hexdigest()[:8]
            path = _FILES / f"page.{digest}.js"
            (site / path).write_text(found[1])
            return f'<script src="{to_root}/{path}"></script>'

        page.write_text(_SCRIPT.sub(file, page.read_text()))
