"""Connect to a cluster with the operator's kubeconfig, or with the pod's service account.

A kubeconfig can name programs to run (`exec`), so a request can never supply a kubeconfig.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from infra_service.lib.error_text import reason_of
from workloads.collector.client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


class ConnectionSetupError(Exception):
    """The kubeconfig or the service account is unusable. The message states the reason."""


def from_options(options: Mapping[str, Any], name: str) -> ClusterClient:
    """Return a client for the options of a command.

    The default context is the context called `name`, or the current context if no context has this
    name.

    Raises:
        ConnectionSetupError: the kubeconfig or the service account is unusable.
    """
    if options["in_cluster"]:
        return in_cluster()
    kubeconfig, context = options["kubeconfig"], options["context"]
    if not context:
        names, current = contexts(kubeconfig)
        context = name if name in names else current
    return from_kubeconfig(kubeconfig, context)


def contexts(kubeconfig: str | None) -> tuple[Collection[str], str]:
    """Return the names of the contexts in a kubeconfig, and the current context."""
    with _readable(kubeconfig):
        listed, current = _package().config.list_kube_config_contexts(kubeconfig)
    return [context["name"] for context in listed], current["name"]


def from_kubeconfig(kubeconfig: str | None, context: str) -> ClusterClient:
    """Return a client for a context. The default file is $KUBECONFIG, or else ~/.kube/config."""
    package = _package()
    import urllib3  # noqa: PLC0415 - comes with the package

    def connected() -> Any:
        configuration = package.client.Configuration()
        # The collector itself retries with pauses. A redirect would leak the token.
        configuration.retries = False
        with _readable(kubeconfig):
            package.config.load_kube_config(
                kubeconfig, context, client_configuration=configuration, persist_config=False
            )
        return package.client.ApiClient(configuration)

    failures = (
        urllib3.exceptions.HTTPError,
        package.client.exceptions.OpenApiException,  # TLS
        package.config.ConfigException,  # a token that cannot be renewed
        ConnectionSetupError,  # credentials that cannot be reloaded
    )
    return ClusterClient(connected, failures)


def in_cluster() -> ClusterClient:
    """Return a client that uses the service account of the current pod."""
    with _installed():
        import urllib3  # noqa: PLC0415 - comes with the kubernetes package

        from workloads.collector import account  # noqa: PLC0415
    try:
        return ClusterClient(
            account.AccountApi, (urllib3.exceptions.HTTPError, account.AccountError)
        )
    except (account.AccountError, OSError) as error:
        raise ConnectionSetupError(reason_of(error)) from error


@contextlib.contextmanager
def _readable(kubeconfig: str | None) -> Iterator[None]:
    """Convert every error in a kubeconfig into a ``ConnectionSetupError``."""
    config = _package().config
    import yaml  # noqa: PLC0415 - comes with the package

    try:
        yield
    except (config.ConfigException, OSError) as error:
        raise ConnectionSetupError(reason_of(error)) from error
    except (
        yaml.YAMLError, TypeError, AttributeError, ValueError, LookupError, RecursionError
    ) as error:  # fmt: skip
        raise ConnectionSetupError(
            f"{kubeconfig or 'the kubeconfig'} is not a valid kubeconfig: {error}"
        ) from error


def _package() -> Any:
    with _installed():
        import kubernetes  # noqa: PLC0415 - an extra, which only the collector needs
        import kubernetes.client  # noqa: PLC0415
        import kubernetes.config  # noqa: PLC0415
    return kubernetes


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    """Raise an error with the installation command if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise ConnectionSetupError(
            "The kubernetes package is not installed: "
            ".venv/bin/pip install --require-hashes -r requirements-kubernetes.txt"
        ) from error
