"""Run the first apply of the how-to: a GitHub Actions job, nginx with TLS and the real terraform.

The issuer on loopback signs the job's token, as the platform would. nginx with `deploy/nginx.conf`
replaces the ingress controller for the chart's Ingress.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.deployment import proxies
from tests.docs.keyless import PlatformJobs, blocks
from tests.support.certificates import self_signed
from tests.support.issuer import IssuerServer
from tests.support.postgres import free_port

HOST: Final = "localhost"
CONFIGURATION: Final = """\
terraform {
  backend "http" {}
}
resource "terraform_data" "first" {}
"""
_SECRET: Final = re.compile(r"(is[kps]_)\w{38}|(password )\S+|eyJ[\w.-]+")


class FirstApply:
    """The URL of the service, its certificate, and the jobs of the pipeline."""

    def __init__(self, issuer: IssuerServer, home: Path) -> None:
        self.home, self._port = home, free_port()
        self.url = f"https://{HOST}:{self._port}"
        self.jobs = PlatformJobs(self.url, issuer, home)
        certificate, key = self_signed(home, HOST)
        # The files for the TLS Secret in the how-to.
        self._files = certificate.rename(home / "infra.crt"), key.rename(home / "infra.key")
        self._authorities = home / "authorities.pem"
        self._authorities.write_text(issuer.ca + self._files[0].read_text())

    def run(self, service: int, transcript: Iterable[str]) -> list[str]:
        """Run the job against the Service at this port; return its commands and their output.

        The trust policy is the policy that ``trust`` printed in the transcript.
        """
        (policy,) = re.findall(r"fed-\w+", "\n".join(transcript))
        self.jobs.trusted(blocks("toml")[0], policy)
        authorities = str(self._authorities)
        pipeline = self.jobs.pipeline(
            "GITHUB", "job", CURL_CA_BUNDLE=authorities, SSL_CERT_FILE=authorities
        )
        (pipeline.directory / "main.tf").write_text(CONFIGURATION)
        text = proxies.with_tls(
            "nginx", proxies.NGINX.read_text(), (self._port, free_port()), self._files,
            f"127.0.0.1:{service}",
        )  # fmt: skip
        job = self.jobs.configuration("GITHUB")["jobs"]["apply"]
        printed = []
        with proxies.running("nginx", text, self._port, self.home):
            for step in job["steps"]:
                before = len(pipeline.log)
                pipeline.github({**job, "steps": [step]})
                printed += [f"job> {step.get('run') or step['uses']}", pipeline.log[before:]]
        assert "Apply complete! Resources: 1 added" in pipeline.log, pipeline.log
        assert "with version 1." in pipeline.log, pipeline.log
        return printed


def without_secrets(lines: Iterable[str]) -> list[str]:
    """Return the lines with tokens, passwords and signed tokens masked."""
    return [_SECRET.sub(lambda found: f"{found[1] or found[2] or 'eyJ'}…", line) for line in lines]
