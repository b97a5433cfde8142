"""Where the credentials come from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from kubernetes.config import incluster_config

from tests.apiserver import KUBE_SYSTEM, TOKEN, ReplayServer
from workloads.collector import connect
from workloads.collector.connect import ConnectionSetupError


def test_the_contexts_of_a_kubeconfig(api: ReplayServer, tmp_path: Path) -> None:
    kubeconfig = str(api.kubeconfig(tmp_path, "prod", "staging"))

    names, current = connect.contexts(kubeconfig)

    assert (list(names), current) == (["prod", "staging"], "prod")


def test_a_context(api: ReplayServer, tmp_path: Path) -> None:
    client = connect.from_kubeconfig(str(api.kubeconfig(tmp_path, "a", "b")), "b")

    assert client.get(KUBE_SYSTEM)["kind"] == "Namespace"


def test_an_exec_plugin_of_the_operators(api: ReplayServer, tmp_path: Path) -> None:
    path = api.kubeconfig(tmp_path)
    credential = (
        '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
        f'"status": {{"token": "{TOKEN}"}}}}'
    )
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho '{credential}'\n")
    plugin.chmod(0o700)
    spec = (
        '{"exec": {"apiVersion": "client.authentication.k8s.io/v1", '
        f'"command": "{plugin}", "interactiveMode": "Never"}}}}'
    )
    path.write_text(path.read_text().replace(f'{{"token": "{TOKEN}"}}', spec))

    assert connect.from_kubeconfig(str(path), "replay").get(KUBE_SYSTEM)["kind"] == "Namespace"


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
    monkeypatch.setattr(connect, "ClusterClient", lambda api, _failures: api)

    configuration = connect.in_cluster().configuration  # type: ignore[attr-defined]

    assert configuration.host == "https://10.0.0.1:443"
    assert configuration.ssl_ca_cert == str(authority)
    assert configuration.get_api_key_with_prefix("BearerToken") == f"bearer {TOKEN}"


def test_not_within_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ConnectionSetupError, match="not set"):
        connect.in_cluster()


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)

    with pytest.raises(ConnectionSetupError, match=r"requirements-kubernetes\.txt"):
        connect.contexts(None)
