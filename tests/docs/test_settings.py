"""docs/reference/settings.md names all settings, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_settings_and_reference_agree() -> None:
    names = ("settings.py", "gunicorn.py", "logs.py", "lib/server/pace.py")
    sources = "".join((ROOT / "infra_service" / name).read_text() for name in names)
    read = set(re.findall(r'env(?:iron)?\.\w+\(\s*"([A-Z_]+)"', sources))

    reference = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", reference, re.MULTILINE)) == read
