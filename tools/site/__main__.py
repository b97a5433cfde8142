"""Build the documentation site: ``python -m tools.site [DIRECTORY]``.

Writes ``site/docs``, which the service serves at ``/docs/`` from its next start on. The pages run
under the service's content policy, so scripts within the pages become files. Each page is also
there as Markdown, and ``llms.txt`` lists them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.site import scripts, stage
from tools.site.navigation import llms_txt

ROOT = Path(__file__).resolve().parents[2]


def build(site: Path) -> None:
    """Replace ``site`` by a new build.

    Raises:
        SystemExit: Zensical reported an error or a broken link.
    """
    with tempfile.TemporaryDirectory(prefix="infra-site-") as directory:
        work = Path(directory)
        stage.write(ROOT, work / "docs")
        shutil.copy(ROOT / "mkdocs.yml", work)
        shutil.copy(Path(__file__).with_name("site.css"), work / "docs")
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(re.sub(r"\x1b\[[\d;]*m", "", done.stdout))
        built = work / "site"
        # The service answers unknown paths itself.
        (built / "404.html").unlink()
        scripts.adapt(built)
        for page in (work / "docs").rglob("*.md"):
            shutil.copy(page, built / page.relative_to(work / "docs"))
        (built / "llms.txt").write_text(llms_txt(ROOT / "mkdocs.yml", work / "docs"))
        compress = [sys.executable, "-m", "whitenoise.compress", "--quiet", "--no-brotli"]
        subprocess.run([*compress, built], check=True)
        shutil.rmtree(site, ignore_errors=True)
        site.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(built, site)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site" / "docs")
