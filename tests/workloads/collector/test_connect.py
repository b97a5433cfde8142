"""Where the credentials come from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import incluster_config

from tests.apiserver import KUBE_SYSTEM, TOKEN, ReplayServer
from workloads.collector import connect
from workloads.collector.connect import ConnectionSetupError
from workloads.collector.errors import RefusedError, UnreachableError


def test_the_contexts_of_a_kubeconfig(api: ReplayServer, tmp_path: Path) -> None:
    kubeconfig = str(api.kubeconfig(tmp_path, "prod", "staging"))

    names, current = connect.contexts(kubeconfig)

    assert (list(names), current) == (["prod", "staging"], "prod")


def test_a_context(api: ReplayServer, tmp_path: Path) -> None:
    client = connect.from_kubeconfig(str(api.kubeconfig(tmp_path, "a", "b")), "b")

    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"


def test_an_exec_plugin_of_the_operators(api: ReplayServer, tmp_path: Path) -> None:
    """It is run again when what it gave is refused, also before the end that it has told."""
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


def test_a_token_file_that_was_replaced(api: ReplayServer, tmp_path: Path) -> None:
    """It is read again when it is refused, by all that was under way with the old one."""
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


def test_a_token_in_a_kubeconfig_that_was_replaced(api: ReplayServer, tmp_path: Path) -> None:
    client = connect.from_kubeconfig(str(api.kubeconfig(tmp_path)), "replay")
    api.token = "renewed"

    with pytest.raises(RefusedError, match="401"):
        client.get(KUBE_SYSTEM)
    # The same token is not tried twice.
    assert len(api.requests) == 1

    api.kubeconfig(tmp_path, token="renewed")
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"


def test_a_kubeconfig_that_is_gone_when_it_is_read_again(api: ReplayServer, tmp_path: Path) -> None:
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
    assert "not of a form to be sent" in str(caught.value)


@pytest.mark.parametrize("content", [None, "", "[]", "{", '{"current-context": "x"}'])
def test_no_usable_kubeconfig(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ConnectionSetupError):
        connect.contexts(str(path))
    with pytest.raises(ConnectionSetupError):
        connect.from_kubeconfig(str(path), "x")


def test_no_such_context(api: ReplayServer, tmp_path: Path) -> None:
    with pytest.raises(ConnectionSetupError, match="other"):
        connect.from_kubeconfig(str(api.kubeconfig(tmp_path)), "other")


def test_the_account_of_the_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text(TOKEN)
    authority.write_text("-----BEGIN CERTIFICATE-----\n")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(connect, "ClusterClient", lambda load, _failures: load())

    configuration = connect.in_cluster().configuration  # type: ignore[attr-defined]

    assert configuration.host == "https://10.0.0.1:443"
    assert configuration.ssl_ca_cert == str(authority)
    assert configuration.get_api_key_with_prefix("BearerToken") == f"bearer {TOKEN}"


def test_the_token_of_the_pod_is_read_again(
    api: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet replaces it; the package looks once a minute, a refused request at once."""
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text(TOKEN)
    authority.write_text("-----BEGIN CERTIFICATE-----\n")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    loader = incluster_config.InClusterConfigLoader
    real = loader._set_config

    def without_tls(self: Any, configuration: Any) -> None:
        real(self, configuration)
        configuration.host, configuration.ssl_ca_cert = api.url, None

    monkeypatch.setattr(loader, "_set_config", without_tls)
    client = connect.in_cluster()
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"

    api.token = "renewed"
    token.write_text("renewed")
    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"


def test_not_within_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ConnectionSetupError, match="not set"):
        connect.in_cluster()


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)

    with pytest.raises(ConnectionSetupError, match=r"requirements-kubernetes\.txt"):
        connect.contexts(None)
