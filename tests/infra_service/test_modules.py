"""Each module can be imported alone."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.installation import ROOT

PACKAGES = ("infra_service", "apikeys", "states", "workloads", "filterlang")
# Without a provider, the app of these models is not installed.
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
