"""Terraform with the `remote` backend or the `cloud` block, on a live server over plain HTTP."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.e2e.terraform import BINARY, Terraform
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


def cli_settings(server: LiveServer) -> str:
    """Return client settings that replace the service discovery, which requires TLS."""
    names = ("tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2")
    services = ", ".join(f'"{name}" = "{server.url}/api/v2/"' for name in names)
    return _CLI % {"host": HOST, "services": services}


class RemoteTerraform(Terraform):
    """A working directory whose token is in ``TF_TOKEN_…``."""

    def __init__(self, directory: Path, server: LiveServer, token: str) -> None:
        super().__init__(directory, "", token, TF_TOKEN_infra_example=token)
        (directory / "cli.tfrc").write_text(cli_settings(server))

    def log_in(self, token: str) -> str:
        """Run ``terraform login`` without a browser, paste the token, and return the output."""
        return self._login(f"Token for {HOST}", lambda _shown: f"{token}\n")

    def log_in_by(self, authorize: Callable[[str], object], **oauth: object) -> str:
        """Run ``terraform login`` with ``login.v1``; pass the address of the page to ``authorize``.

        ``authorize`` acts as the browser, and calls the client's listener.
        """
        settings = self.directory / "cli.tfrc"
        client = ", ".join(f'"{name}" = {json.dumps(value)}' for name, value in oauth.items())
        login = f'services = {{ "login.v1" = {{ {client} }}, '
        settings.write_text(settings.read_text().replace("services = {", login))

        def open_page(shown: str) -> str:
            authorize(shown.rsplit(maxsplit=1)[-1])
            return ""

        return self._login("response_type=code", open_page)

    def _login(self, awaited: str, respond: Callable[[str], str]) -> str:
        """Run the command until a line with this text; then send the response to the output."""
        home = self.directory / "home"
        (home / ".terraform.d").mkdir(parents=True)
        # With a settings file of another name, the client reads no stored credentials.
        (self.directory / "cli.tfrc").rename(home / ".terraformrc")
        del self.environment["TF_CLI_CONFIG_FILE"], self.environment["TF_TOKEN_infra_example"]
        ignored = ("TF_INPUT", "TF_IN_AUTOMATION")
        asked = {name: text for name, text in self.environment.items() if name not in ignored}
        assert BINARY is not None
        process = subprocess.Popen(
            [BINARY, "login", "-no-color", HOST],
            cwd=self.directory,
            env={**asked, "PATH": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("yes\n")
        process.stdin.flush()
        out = ""
        # The client would read both answers at its first question.
        while awaited not in out:
            line = process.stdout.readline()
            assert line, out
            out += line
        rest, _ = process.communicate(respond(out), timeout=60)
        assert process.returncode == 0, out + rest
        return out + rest

    def use_remote(self, workspaces: str) -> None:
        (self.directory / "backend.tf").write_text(_REMOTE % workspaces)

    def use_cloud(self, workspaces: str, organization: str = ORGANIZATION) -> None:
        block = (_CLOUD % workspaces).replace(ORGANIZATION, organization)
        (self.directory / "backend.tf").write_text(block)
