"""docs/reference/settings.md names all settings, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_settings_and_reference_agree() -> None:
    settings = (ROOT / "infra_service" / "settings.py").read_text()
    server = [
        (ROOT / "infra_service" / name).read_text()
        for name in ("gunicorn.py", "logs.py", "lib/server/pace.py")
    ]
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', settings))
    read |= set(re.findall(r'environ\.get\("([A-Z_]+)"', "".join(server)))

    reference = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", reference, re.MULTILINE)) == read
