"""Build the documentation site: ``python -m tools.site [DIRECTORY]``.

The output directory is ``site/docs`` by default. The service serves the site at ``/docs/`` after
the next start of the service. The service's Content-Security-Policy blocks inline scripts, so the
build moves them to files. The site also contains each page as Markdown, and ``llms.txt`` lists the
pages.
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
    """Replace the directory ``site`` with a new build.

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
        # The service returns its own response for unknown paths.
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
