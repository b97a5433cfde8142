"""Each module can be imported alone."""

from __future__ import annotations

from tests.support.installation import ROOT
from tests.support.new_process import output_of

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
    names = output_of(SCRIPT, *PACKAGES, **SIGN_ON).split()

    found = {name.replace(".", "/") for name in names}
    written = {
        path.relative_to(ROOT).with_suffix("")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert {str(p.parent if p.name == "__init__" else p) for p in written} == found | {*PACKAGES}
