"""The sources of the collector's credentials."""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver import KUBE_SYSTEM, TOKEN, Fault, ReplayServer
from tests.support.certificates import self_signed
from workloads.collector import account, connect, listing, usage
from workloads.collector import client as client_module
from workloads.collector.connect import ConnectionSetupError
from workloads.collector.errors import RefusedError, UnreachableError


def test_contexts_of_a_kubeconfig_are_listed(api: ReplayServer, tmp_path: Path) -> None:
    kubeconfig = str(api.kubeconfig(tmp_path, "prod", "staging"))

    names, current = connect.contexts(kubeconfig)

    assert (list(names), current) == (["prod", "staging"], "prod")


def test_context_is_selected(api: ReplayServer, tmp_path: Path) -> None:
    client = connect.from_kubeconfig(str(api.kubeconfig(tmp_path, "a", "b")), "b")

    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"


def test_exec_plugin_of_the_operator_is_run(api: ReplayServer, tmp_path: Path) -> None:
    """The plugin runs again when its token is rejected, even before the stated expiry."""
    path, token = api.kubeconfig(tmp_path), tmp_path / "token"
    token.write_text(TOKEN)
    credential = (
        '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
        '"status": {"token": "%s", "expirationTimestamp": "2099-01-01T00:00:00Z"}}'
    )
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\nprintf '{credential}' \"$(cat {token})\"\n")
    plugin.chmod(0o700)
    spec = (
        '{"exec": {"apiVersion": "client.authentication.k8s.io/v1", '
        f'"command": "{plugin}", "interactiveMode": "Never"}}}}'
    )
    path.write_text(path.read_text().replace(f'{{"token": "{TOKEN}"}}', spec))

    client = connect.from_kubeconfig(str(path), "replay")
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"
    api.token = "renewed"
    token.write_text("renewed")
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"


def test_replaced_token_file_is_loaded(api: ReplayServer, tmp_path: Path) -> None:
    """All requests that used the old token read the file again when the token is rejected."""
    path, token = api.kubeconfig(tmp_path), tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    path.write_text(path.read_text().replace(f'"token": "{TOKEN}"', f'"tokenFile": "{token}"'))
    client = connect.from_kubeconfig(str(path), "replay")
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"

    api.token = "renewed"
    token.write_text("renewed\n")

    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"
    assert [h["authorization"] for h in api.headers] == [
        f"Bearer {TOKEN}", f"Bearer {TOKEN}", "Bearer renewed"
    ]  # fmt: skip


def test_replaced_token_in_a_kubeconfig_is_loaded(api: ReplayServer, tmp_path: Path) -> None:
    client = connect.from_kubeconfig(str(api.kubeconfig(tmp_path)), "replay")
    api.token = "renewed"

    with pytest.raises(RefusedError, match="401"):
        client.get(KUBE_SYSTEM)
    # The same token is not tried twice.
    assert len(api.requests) == 1

    api.kubeconfig(tmp_path, token="renewed")
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"


def test_missing_kubeconfig_is_reported_at_the_reload(api: ReplayServer, tmp_path: Path) -> None:
    path = api.kubeconfig(tmp_path)
    client = connect.from_kubeconfig(str(path), "replay")
    api.token = "renewed"
    path.unlink()

    with pytest.raises(UnreachableError, match="ConnectionSetupError"):
        client.get(KUBE_SYSTEM)

    api.kubeconfig(tmp_path, token="renewed")
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"


def test_a_token_that_no_header_can_carry_is_not_shown(api: ReplayServer, tmp_path: Path) -> None:
    path = api.kubeconfig(tmp_path, token="secret-one\nsecret-two")
    client = connect.from_kubeconfig(str(path), "replay")

    with pytest.raises(UnreachableError) as caught:
        client.get(KUBE_SYSTEM)

    assert "secret" not in str(caught.value)
    assert "contain invalid characters" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, "", "[]", "{", "[" * 5000, '{"current-context": "x"}'])
def test_unusable_kubeconfig_is_reported(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ConnectionSetupError):
        connect.contexts(str(path))
    with pytest.raises(ConnectionSetupError):
        connect.from_kubeconfig(str(path), "x")


def test_unknown_context_is_reported(api: ReplayServer, tmp_path: Path) -> None:
    with pytest.raises(ConnectionSetupError, match="other"):
        connect.from_kubeconfig(str(api.kubeconfig(tmp_path)), "other")


class Account:
    """A pod's account at an API server with TLS, and the files that Kubernetes mounts."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api = ReplayServer()
        certificate, key = self_signed(directory, "kubernetes")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.api._http.socket = context.wrap_socket(
            self.api._http.socket, server_side=True, do_handshake_on_connect=False
        )
        self.api._http.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.token, self.authority = directory / "token", directory / "ca.crt"
        self.token.write_text(TOKEN)
        self.authority.write_bytes(certificate.read_bytes())
        monkeypatch.setattr(account, "TOKEN_FILE", self.token)
        monkeypatch.setattr(account, "CA_FILE", self.authority)
        host, _, port = self.api.url.removeprefix("http://").partition(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    pod = Account(tmp_path, monkeypatch)
    with pod.api:
        yield pod


def test_account_of_the_pod_is_used(pod: Account) -> None:
    client = connect.in_cluster()

    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"
    assert sum(len(page.items or ()) for page in client.pages(listing.PODS)) == 119


@pytest.mark.parametrize(("is_closed", "message"), [
    (True, "the client stopped during the request"), (False, "took longer than 30 s"),
])  # fmt: skip
def test_data_after_a_shutdown_is_not_a_response(
    pod: Account, monkeypatch: pytest.MonkeyPatch, *, is_closed: bool, message: str
) -> None:
    """Python reads on from a connection that was shut down, and returns the encrypted bytes."""
    cut_off: list[Callable[[], None]] = []

    class Clock(threading.Timer):
        def start(self) -> None:
            cut_off.append(lambda: self.function(*self.args, **self.kwargs))

    monkeypatch.setattr(threading, "Timer", Clock)
    monkeypatch.setattr(client_module, "_BLOCK", 1000)
    body = json.dumps({"items": [{"metadata": {"name": f"pod-{n}"}} for n in range(100_000)]})
    pod.api.metrics_fault = Fault(200, body.encode())
    client = connect.in_cluster()
    objects = client.unpaged(usage.METRICS, within=30)
    assert next(objects) == {"metadata": {"name": "pod-0"}}

    (client.close if is_closed else cut_off[0])()

    with pytest.raises(UnreachableError, match=message):
        list(objects)


def test_the_token_of_the_pod_is_read_again(pod: Account) -> None:
    """The kubelet replaces it."""
    client = connect.in_cluster()
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"

    pod.api.token = "renewed"
    with pytest.raises(RefusedError, match="401"):
        client.get(KUBE_SYSTEM)
    pod.token.write_text("renewed\n")
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"
    pod.token.unlink()
    with pytest.raises(UnreachableError, match="The pod has no token of a service account"):
        client.get(KUBE_SYSTEM)


def test_certificate_of_the_api_server_is_verified(pod: Account, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    another, _key = self_signed(tmp_path / "other", "other")
    pod.authority.write_bytes(another.read_bytes())

    with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
        connect.in_cluster().get(KUBE_SYSTEM)
    assert pod.api.requests == []


def test_a_redirect_is_not_followed(pod: Account) -> None:
    pod.api.faults[KUBE_SYSTEM].append(Fault(302, b"", headers={"Location": pod.api.url}))

    with pytest.raises(RefusedError, match="302"):
        connect.in_cluster().get(KUBE_SYSTEM)


@pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_missing_pod_is_reported(
    pod: Account, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(missing)

    with pytest.raises(ConnectionSetupError, match="is not set"):
        connect.in_cluster()


@pytest.mark.parametrize("content", ["", " \n", None])
def test_pod_without_an_account_is_reported(pod: Account, content: str | None) -> None:
    if content is None:
        pod.token.unlink()
    else:
        pod.token.write_text(content)

    with pytest.raises(ConnectionSetupError, match="The pod has no token of a service account"):
        connect.in_cluster()


def test_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)

    with pytest.raises(ConnectionSetupError, match=r"requirements-kubernetes\.txt"):
        connect.contexts(None)


def test_missing_extra_is_reported_for_a_named_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    monkeypatch.setitem(sys.modules, "urllib3", None)

    with pytest.raises(ConnectionSetupError, match=r"requirements-kubernetes\.txt"):
        connect.from_kubeconfig("kubeconfig", "prod")
