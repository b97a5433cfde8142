"""The API server as the account of a pod asks it: what Kubernetes puts into each pod, and no more.

The `kubernetes` package, which reads kubeconfigs, would double the memory of an agent that needs
none.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import urllib3

#: Where Kubernetes puts them; the kubelet replaces the token long before it ends.
TOKEN_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
CA_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
# As many as there are threads that ask.
_CONNECTIONS: Final = 8


class AccountError(Exception):
    """The process is in no pod, or the pod has no token; the message says which."""


class AccountApi:
    """Has of the package's ``ApiClient`` what a ``Connection`` asks for."""

    def __init__(self) -> None:
        host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
        if not host or not port:
            raise AccountError(
                "This is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
            )
        host = f"[{host}]" if ":" in host else host
        self.configuration = SimpleNamespace(host=f"https://{host}:{port}")
        self._pool = urllib3.PoolManager(
            cert_reqs="CERT_REQUIRED", ca_certs=str(CA_FILE), maxsize=_CONNECTIONS
        )
        _token()

    def update_params_for_auth(self, headers: dict[str, str], *_: Any) -> None:
        """Add the token of now."""
        headers["authorization"] = f"Bearer {_token()}"

    def call_api(
        self, method: str, url: str, headers: dict[str, str], *, _request_timeout: Any
    ) -> Any:
        """Return an answer as soon as it begins. A redirect would carry the token elsewhere."""
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
        raise AccountError(f"The pod has no account: {error}") from error
    if not token:
        raise AccountError(f"The pod has no account: {TOKEN_FILE} is empty")
    return token
