"""``make release``: bills of materials and provenance of a commit."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.installation import ROOT
from tools.release.__main__ import LISTS, write

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files that a release reads."""
    root = tmp_path_factory.mktemp("checkout")
    names = ["Dockerfile", "pyproject.toml", "requirements-dev.txt", *LISTS.values()]
    for name in [*names, "infra_service/__init__.py"]:
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    git = ["git", "-C", str(root), "-c", "user.name=ada", "-c", "user.email=ada@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    return root


@pytest.fixture(scope="module")
def files(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("build")
    return {re.sub(r"-\d[\d.]*\d\.", ".", path.name): path for path in write(directory, checkout)}


def test_every_list_of_an_image_has_a_bill() -> None:
    copied = re.findall(r"requirements[\w-]*\.txt", (ROOT / "Dockerfile").read_text())

    # The site's builder is not in the image.
    assert set(LISTS.values()) == set(copied) - {"requirements-docs.txt"}


@pytest.mark.parametrize("name", LISTS)
def test_bills_are_valid_and_list_every_pinned_package(files: dict[str, Path], name: str) -> None:
    # Imported only here: the validator's grammars take seconds, in each process of the tests.
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    text = files[f"{name}.cdx.json"].read_text()
    pins = re.findall(
        r"^([\w.-]+)(?:\[.+?\])?==(\S+)", (ROOT / LISTS[name]).read_text(), re.MULTILINE
    )
    components = {component["name"]: component for component in json.loads(text)["components"]}

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert {found: c["version"] for found, c in components.items()} == dict(pins)
    hashes = [c["externalReferences"][0]["hashes"] for c in components.values()]
    assert all(entry["alg"] == "SHA-256" for entries in hashes for entry in entries)
    digests = re.findall(r"sha256:(\w{64})", (ROOT / LISTS[name]).read_text())
    assert sorted(entry["content"] for entries in hashes for entry in entries) == sorted(digests)


def test_a_commit_has_the_same_files(
    checkout: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    again = {path.name: path.read_bytes() for path in write(tmp_path, checkout)}

    assert again == {path.name: path.read_bytes() for path in files.values()}


def test_provenance_names_the_files_and_their_inputs(
    checkout: Path, files: dict[str, Path]
) -> None:
    statement = json.loads(files["infra-service.provenance.json"].read_text())
    definition = statement["predicate"]["buildDefinition"]
    source, *inputs = definition["resolvedDependencies"]
    head = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], check=True, capture_output=True
    )

    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert statement["predicate"]["runDetails"]["builder"]["id"]
    assert source["digest"]["gitCommit"] == head.stdout.decode().strip()
    made = {
        path.name: path for path in files.values() if path != files["infra-service.provenance.json"]
    }
    assert {s["name"]: s["digest"]["sha256"] for s in statement["subject"]} == {
        name: digest(path) for name, path in made.items()
    }
    assert {entry["name"]: entry["digest"]["sha256"] for entry in inputs} == {
        entry["name"]: digest(ROOT / entry["name"]) for entry in inputs
    }
    assert set(LISTS.values()) <= {entry["name"] for entry in inputs}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_uncommitted_changes_are_refused(checkout: Path, tmp_path: Path) -> None:
    extra = checkout / "extra"
    extra.touch()
    try:
        with pytest.raises(SystemExit, match="uncommitted changes"):
            write(tmp_path / "build", checkout)
    finally:
        extra.unlink()
    assert not (tmp_path / "build").exists()
