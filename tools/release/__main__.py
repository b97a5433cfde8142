"""Write the files of a release: ``python -m tools.release [DIRECTORY]``.

The files are the source code of the commit, a CycloneDX bill of materials for each requirements
file of the images, and SLSA provenance with the digests of the inputs. The same commit always
produces the same files, byte for byte. docs/how-to/deploy.md explains how to build and attest the
images.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
#: The requirements files that the Dockerfile installs for the service, its extras and the agent.
LISTS: Final = {
    "infra-service": "requirements.txt",
    "infra-service-kubernetes": "requirements-kubernetes.txt",
    "infra-service-otel": "requirements-otel.txt",
    "infra-service-s3": "requirements-s3.txt",
    "infra-service-sso": "requirements-sso.txt",
    "infra-agent": "requirements-agent.txt",
}
_RELEASE: Final = "urn:infra-service:make-release"


def write(directory: Path, root: Path = ROOT) -> list[Path]:
    """Write the release files of the checkout ``root`` into the directory and return their paths.

    Raises:
        SystemExit: the checkout has uncommitted changes.
    """
    if _git(root, "status", "--porcelain"):
        sys.exit("The checkout has uncommitted changes. Commit them before you make a release.")
    version = _version(root)
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / f"infra-service-{version}.tar"
    prefix = f"--prefix=infra-service-{version}/"
    _git(root, "archive", "--format=tar", prefix, f"--output={source.resolve()}", "HEAD")
    made = [source, *(_bill(directory, root, name, version) for name in LISTS)]
    statement = directory / f"infra-service-{version}.provenance.json"
    _dump(statement, provenance(made, root, version))
    return [*made, statement]


def provenance(made: list[Path], root: Path, version: str) -> dict[str, Any]:
    """Return an in-toto statement about these files, with unsigned SLSA provenance (level 1)."""
    inputs = ["Dockerfile", "pyproject.toml", "requirements-dev.txt", *LISTS.values()]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [_described(path, path.name) for path in made],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{_RELEASE}:v1",
                "externalParameters": {"version": version},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": _git(root, "rev-parse", "HEAD")}},
                    *(_described(root / name, name) for name in inputs),
                ],
            },
            # There is no build service: trust in the files depends on the machine that built them.
            "runDetails": {"builder": {"id": _RELEASE}},
        },
    }


def _bill(directory: Path, root: Path, name: str, version: str) -> Path:
    """Write the bill of materials of a requirements file in the format CycloneDX 1.6."""
    path = directory / f"{name}-{version}.cdx.json"
    options = (
        "--output-reproducible",
        "--no-validate",
        "--spec-version=1.6",
        f"--output-file={path.resolve()}",
    )
    command = ["-W", "ignore", "-m", "cyclonedx_py", "requirements", *options]
    subprocess.run([sys.executable, *command, LISTS[name]], cwd=root, check=True)
    bill = json.loads(path.read_text())
    bill["metadata"]["component"] = {
        "bom-ref": name, "type": "application", "name": name, "version": version,
    }  # fmt: skip
    _dump(path, bill)
    return path


def _dump(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def _described(path: Path, name: str) -> dict[str, Any]:
    """Return an in-toto resource descriptor with the digest of a file."""
    return {"name": name, "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}


def _version(root: Path) -> str:
    text = (root / "infra_service" / "__init__.py").read_text()
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    for file in write(Path(*sys.argv[1:2]) if sys.argv[1:] else ROOT / "build"):
        print(file)
