"""Where the credentials of a cluster come from: a kubeconfig of the operator's, or the pod.

A kubeconfig can name programs to be run (`exec`), so that one never comes from a request.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from workloads.collector.client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class ConnectionSetupError(Exception):
    """There is no usable kubeconfig or account; the message says why."""


def contexts(kubeconfig: str | None) -> tuple[Collection[str], str]:
    """Return the names of a kubeconfig's contexts, and of the current one."""
    with _readable(kubeconfig):
        listed, current = _package().config.list_kube_config_contexts(kubeconfig)
    return [context["name"] for context in listed], current["name"]


def from_kubeconfig(kubeconfig: str | None, context: str) -> ClusterClient:
    """Connect as a context of a kubeconfig; None is $KUBECONFIG, or else ~/.kube/config."""
    config, configuration = _package().config, _configuration()
    with _readable(kubeconfig):
        config.load_kube_config(
            kubeconfig, context, client_configuration=configuration, persist_config=False
        )
    return _client(configuration)


def in_cluster() -> ClusterClient:
    """Connect as the service account of the pod that this runs in."""
    config, configuration = _package().config, _configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException as error:
        raise ConnectionSetupError(str(error)) from error
    return _client(configuration)


@contextlib.contextmanager
def _readable(kubeconfig: str | None) -> Iterator[None]:
    """Say in one form what is wrong with a kubeconfig; the package trips over an odd one."""
    config = _package().config
    import yaml  # noqa: PLC0415 - comes with the package

    try:
        yield
    except (config.ConfigException, OSError) as error:
        raise ConnectionSetupError(str(error)) from error
    except (yaml.YAMLError, TypeError, AttributeError) as error:
        raise ConnectionSetupError(f"{kubeconfig or 'the kubeconfig'} is none: {error}") from error


def _package() -> Any:
    try:
        import kubernetes  # noqa: PLC0415 - an extra, which only the collector needs
        import kubernetes.client  # noqa: PLC0415
        import kubernetes.config  # noqa: PLC0415
    except ImportError as error:
        raise ConnectionSetupError(
            "The kubernetes package is not installed: "
            "pip install --require-hashes -r requirements-kubernetes.txt"
        ) from error
    return kubernetes


def _configuration() -> Any:
    configuration = _package().client.Configuration()
    # Pauses between attempts are ours; a redirect would carry the token elsewhere.
    configuration.retries = False
    return configuration


def _client(configuration: Any) -> ClusterClient:
    import urllib3  # noqa: PLC0415 - comes with the package

    package = _package()
    failures = (
        urllib3.exceptions.HTTPError,
        package.client.exceptions.OpenApiException,  # TLS
        package.config.ConfigException,  # a token that cannot be renewed
    )
    return ClusterClient(package.client.ApiClient(configuration), failures)
