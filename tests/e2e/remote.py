"""Terraform with the `remote` backend or the `cloud` block, on a live server over plain HTTP."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.terraform import Terraform
from tests.support.server import LiveServer

HOST = "infra.example"
ORGANIZATION = "acme"
_CLI = """disable_checkpoint = true
host "%(host)s" {
  services = { %(services)s }
}
"""
_REMOTE = """terraform {
  backend "remote" {
    hostname     = "infra.example"
    organization = "acme"
    workspaces { %s }
  }
}
"""
_CLOUD = """terraform {
  cloud {
    hostname     = "infra.example"
    organization = "acme"
    workspaces { %s }
  }
}
"""


class RemoteTerraform(Terraform):
    """A working directory whose token is in ``TF_TOKEN_…``."""

    def __init__(self, directory: Path, server: LiveServer, token: str) -> None:
        super().__init__(directory, "", token, TF_TOKEN_infra_example=token)
        names = ("tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2")
        services = ", ".join(f'"{name}" = "{server.url}/api/v2/"' for name in names)
        (directory / "cli.tfrc").write_text(_CLI % {"host": HOST, "services": services})

    def use_remote(self, workspaces: str) -> None:
        (self.directory / "backend.tf").write_text(_REMOTE % workspaces)

    def use_cloud(self, workspaces: str) -> None:
        (self.directory / "backend.tf").write_text(_CLOUD % workspaces)
