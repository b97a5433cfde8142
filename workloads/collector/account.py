"""A client of the API server that authenticates with the service account of its pod.

An agent in a pod does not need a kubeconfig. The `kubernetes` package, which reads kubeconfigs,
would double the agent's memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import urllib3

from infra_service.lib.error_text import reason_of

#: The paths at which Kubernetes mounts the files. The kubelet replaces the token long before its
#: expiry.
TOKEN_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
CA_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
# The number of threads that send requests.
_CONNECTIONS: Final = 8


class AccountError(Exception):
    """The process does not run in a pod, or the pod has no token. The message states which."""


class AccountApi:
    """The subset of the ``ApiClient`` of `kubernetes` that a ``Connection`` uses."""

    def __init__(self) -> None:
        host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
        if not host or not port:
            raise AccountError(
                "The process does not run in a pod: KUBERNETES_SERVICE_HOST or "
                "KUBERNETES_SERVICE_PORT is not set. Outside a pod, use --kubeconfig"
            )
        host = f"[{host}]" if ":" in host else host
        self.configuration = SimpleNamespace(host=f"https://{host}:{port}")
        self._pool = urllib3.PoolManager(
            cert_reqs="CERT_REQUIRED", ca_certs=str(CA_FILE), maxsize=_CONNECTIONS
        )
        _token()

    def update_params_for_auth(self, headers: dict[str, str], *_: Any) -> None:
        """Add the current token to the headers."""
        headers["authorization"] = f"Bearer {_token()}"

    def call_api(
        self, method: str, url: str, headers: dict[str, str], *, _request_timeout: Any
    ) -> Any:
        """Send a request and return the response as soon as its headers arrive.

        The client does not follow redirects, which would leak the token.
        """
        connect, read = _request_timeout
        response = self._pool.request(
            method,
            url,
            headers=headers,
            timeout=urllib3.Timeout(connect=connect, read=read),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        return SimpleNamespace(response=response)


def _token() -> str:
    try:
        token = TOKEN_FILE.read_text().strip()
    except (OSError, ValueError) as error:
        raise AccountError(
            f"The pod has no token of a service account: {reason_of(error)}"
        ) from error
    if not token:
        raise AccountError(f"The pod has no token of a service account: {TOKEN_FILE} is empty")
    return token
