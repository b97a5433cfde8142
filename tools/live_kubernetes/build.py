"""Build a control plane from Debian's source and packages once, in a cache outside the tree.

The build installs nothing on the machine. apt downloads packages from the machine's configured
sources, and the build unpacks them in the cache. The source of Kubernetes includes its
dependencies, so Go needs no network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Go, etcd, kubectl, and the only dependency that must be newer than the vendored version.
PACKAGES = (
    "golang-1.19-go",
    "golang-1.19-src",
    "etcd-server",
    "kubernetes-client",
    "golang-github-modern-go-reflect2-dev",
)
PROGRAMS = ("kube-apiserver", "kube-controller-manager")
# The build scripts of Kubernetes set the version. Charts with a `kubeVersion` require it.
VERSION_FLAGS = " ".join(
    f"-X k8s.io/kubernetes/vendor/k8s.io/{package}/version.gitVersion=v1.20.2"
    for package in ("component-base", "client-go/pkg")
)
OPENAPI_INPUTS = re.compile(r"^\s*//\s*\+k8s:openapi-gen=(true|package)", re.MULTILINE)


@dataclass(frozen=True)
class Binaries:
    etcd: Path
    kubectl: Path
    apiserver: Path
    controller_manager: Path


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "infra-service" / "live-kubernetes"


def binaries(cache: Path) -> Binaries:
    """Return the programs. The first call builds them (10 minutes on two cores, 4 GB of disk)."""
    found = Binaries(
        etcd=cache / "root/usr/bin/etcd",
        kubectl=cache / "root/usr/bin/kubectl",
        apiserver=cache / "bin/kube-apiserver",
        controller_manager=cache / "bin/kube-controller-manager",
    )
    if not all(path.exists() for path in vars(found).values()):
        cache.mkdir(parents=True, exist_ok=True)
        apt = _apt(cache)
        _unpack_packages(cache, apt)
        _build(cache, _unpack_source(cache, apt))
    return found


def _apt(cache: Path) -> list[str]:
    """Return an apt command with a copy of the machine's sources that includes source packages."""
    parts = cache / "apt/sources.list.d"
    for directory in (parts, cache / "apt/lists/partial", cache / "apt/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    for source in Path("/etc/apt/sources.list.d").glob("*.sources"):
        text = re.sub(r"^Types:.*$", "Types: deb deb-src", source.read_text(), flags=re.MULTILINE)
        (parts / source.name).write_text(text)
    for source in (Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*.list")):
        if source.exists():
            lines = [line for line in source.read_text().splitlines() if line.startswith("deb ")]
            both = [*lines, *("deb-src " + line.removeprefix("deb ") for line in lines)]
            (parts / f"{source.stem}-lines.list").write_text("\n".join(both) + "\n")
    apt = [
        "apt-get",
        "-qq",
        "-o", "Dir::Etc::SourceList=/dev/null",
        "-o", f"Dir::Etc::SourceParts={parts}",
        "-o", f"Dir::State::Lists={cache / 'apt/lists'}",
        "-o", f"Dir::Cache={cache / 'apt'}",
        "-o", "APT::Sandbox::User=root",
    ]  # fmt: skip
    _run([*apt, "update"], cache)
    return apt


def _unpack_packages(cache: Path, apt: list[str]) -> None:
    archives = cache / "packages"
    archives.mkdir(exist_ok=True)
    _run([*apt, "download", *PACKAGES], archives)
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg", "-x", str(archive), str(cache / "root")], cache)


def _unpack_source(cache: Path, apt: list[str]) -> Path:
    """Return a GOPATH that contains Kubernetes at the path that its generators require."""
    archives = cache / "source"
    archives.mkdir(exist_ok=True)
    _run([*apt, "source", "--download-only", "kubernetes"], archives)
    (description,) = archives.glob("kubernetes_*.dsc")
    gopath = cache / "gopath"
    tree = gopath / "src/k8s.io/kubernetes"
    shutil.rmtree(gopath, ignore_errors=True)
    tree.parent.mkdir(parents=True)
    _run(["dpkg-source", "--no-check", "-x", str(description), str(tree)], cache)
    # With the vendored version 1.0.1, programs built by Go 1.19 crash under load ("fatal error:
    # fault").
    reflect2 = tree / "vendor/github.com/modern-go/reflect2"
    shutil.rmtree(reflect2)
    shutil.copytree(cache / "root/usr/share/gocode/src/github.com/modern-go/reflect2", reflect2)
    return gopath


def _build(cache: Path, gopath: Path) -> None:
    tree = gopath / "src/k8s.io/kubernetes"
    goroot = cache / "root/usr/lib/go-1.19"
    environment = {
        **os.environ,
        "PATH": f"{goroot / 'bin'}:{os.environ['PATH']}",
        "GOROOT": str(goroot),
        "GOPATH": str(gopath),
        "GOCACHE": str(cache / "go-build"),
        "GO111MODULE": "off",  # as in 2020: Go 1.19 would amend go.mod
        "GOPROXY": "off",
        "CGO_ENABLED": "0",
    }
    generated = tree / "pkg/generated/openapi/zz_generated.openapi.go"
    if not generated.exists():
        _generate_openapi(tree, generated, environment, cache)
    for program in PROGRAMS:
        _run(
            [
                "nice",
                "-n",
                "10",
                "go",
                "build",
                f"-ldflags={VERSION_FLAGS}",
                "-o",
                str(cache / "bin" / program),
                f"./cmd/{program}",
            ],
            tree,
            environment,
        )


def _generate_openapi(
    tree: Path, generated: Path, environment: dict[str, str], cache: Path
) -> None:
    """Create the only generated file that the source does not include."""
    generator = cache / "bin/openapi-gen"
    _run(
        ["go", "build", "-o", str(generator), "./vendor/k8s.io/kube-openapi/cmd/openapi-gen"],
        tree,
        environment,
    )
    packages = sorted({_package(path, tree) for path in _openapi_files(tree)})
    boilerplate = tree / "hack/boilerplate/boilerplate.generatego.txt"
    _run(
        [
            str(generator),
            "--go-header-file", str(boilerplate),
            "--input-dirs", ",".join(packages),
            "--output-package", "k8s.io/kubernetes/pkg/generated/openapi",
            "--output-file-base", generated.stem,
            "--output-base", str(tree.parents[1]),
            "--report-filename", str(cache / "openapi-violations.txt"),
        ],
        tree,
        environment,
    )  # fmt: skip


def _openapi_files(tree: Path) -> list[Path]:
    roots = (tree / "pkg", tree / "staging/src/k8s.io", tree / "vendor/k8s.io")
    return [
        path
        for root in roots
        for path in root.rglob("*.go")
        if not path.name.endswith("_test.go")
        and OPENAPI_INPUTS.search(path.read_text(errors="replace"))
    ]


def _package(path: Path, tree: Path) -> str:
    inside = path.parent.relative_to(tree).as_posix()
    for prefix in ("staging/src/", "vendor/"):
        if inside.startswith(prefix):
            return f"k8s.io/kubernetes/vendor/{inside.removeprefix(prefix)}"
    return f"k8s.io/kubernetes/{inside}"


def _run(command: list[str], directory: Path, environment: dict[str, str] | None = None) -> None:
    print("$", " ".join(command)[:200], flush=True)
    subprocess.run(command, cwd=directory, env=environment, check=True)


if __name__ == "__main__":
    print(binaries(cache_directory()))
