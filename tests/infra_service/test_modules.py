"""Each module can be loaded, and is measured as it is: tests are collected without coverage."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.installation import ROOT
from tests.support.parts import unmeasured

pytestmark = pytest.mark.processes

PACKAGES = ("infra_service", "apikeys", "states", "workloads", "filterlang")
# Without a provider there is no app of its models.
SIGN_ON = {
    "OIDC_ISSUER": "https://sso.example",
    "OIDC_CLIENT_ID": "infra",
    "OIDC_CLIENT_SECRET": "secret",
    "OIDC_GROUP_MAP": "staff=operator",
}
SCRIPT = """
import importlib, pkgutil, sys
import django

django.setup()
for package in map(importlib.import_module, sys.argv[1:]):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
        print(module.name)
"""


def test_each_module_is_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, *PACKAGES],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", **SIGN_ON},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )

    found = {name.replace(".", "/") for name in done.stdout.split()}
    written = {
        path.relative_to(ROOT).with_suffix("")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert {str(p.parent if p.name == "__init__" else p) for p in written} == found | {*PACKAGES}


def test_nothing_traces_what_is_not_measured() -> None:
    """A measurement that goes on would take twice the time of all other tests."""
    with unmeasured():
        assert sys.gettrace() is None
