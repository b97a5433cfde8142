"""The options of an agent, ``sync_workloads --report-to``, which does not use a database."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from workloads.collection import DEFAULT_REPORT_INTERVAL
from workloads.collector import connect
from workloads.collector.service import ServiceDestination
from workloads.collector.service_connection import AddressError, ServiceConnection
from workloads.collector.service_credentials import ExchangedToken, TokenFile
from workloads.collector.targets import Target

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from workloads.collector.service_credentials import Credentials

_ONLY_HERE = ("token_file", "trust_policy", "identity_token_file", "token_cache", "ca_file")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--report-to",
        metavar="URL",
        help="run as an agent without the service's settings, and report to the service at this "
        "address; requires the cluster's id as --cluster",
    )
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument(
        "--token-file", metavar="F", help="file with an access token; read for each request"
    )
    whose.add_argument(
        "--trust-policy",
        metavar="ID",
        help="id of a trust policy (fed-…); exchange the pod's own token for an access token",
    )
    parser.add_argument(
        "--identity-token-file",
        metavar="F",
        help="file with the pod's own token, for the issuer's audience",
    )
    parser.add_argument(
        "--token-cache",
        metavar="F",
        help="store the exchanged token in this file for the next start",
    )
    parser.add_argument(
        "--ca-file", metavar="F", help="CA certificates for the service, instead of the system's"
    )


def reporting_target(options: dict[str, Any], version: str) -> Target:
    """Return the cluster that the agent reports.

    Raises:
        CommandError: the options are invalid or contradict each other.
        ConnectionSetupError: the credentials of the cluster are missing or invalid.
    """
    try:
        cluster_id = uuid.UUID(options["cluster"])
    except ValueError as error:
        raise CommandError("with --report-to, --cluster must be the id of the cluster") from error
    try:
        connection = ServiceConnection(options["report_to"], options["ca_file"])
    except AddressError as error:
        raise CommandError(str(error)) from error
    credentials = _credentials(options, connection)
    destination = ServiceDestination(connection, credentials, cluster_id, f"agent/{version}")
    client = connect.from_options(options, "")
    return Target(str(cluster_id), client, destination, DEFAULT_REPORT_INTERVAL)


def refuse_options_of_agents(options: dict[str, Any]) -> None:
    """Refuse options that require ``--report-to``.

    Raises:
        CommandError: such an option is set.
    """
    for name in _ONLY_HERE:
        if options[name] is not None:
            raise CommandError(f"--{name.replace('_', '-')} requires --report-to")


def _credentials(options: dict[str, Any], connection: ServiceConnection) -> Credentials:
    policy, identity = options["trust_policy"], options["identity_token_file"]
    cache = options["token_cache"]
    if policy is None:
        if identity is not None or cache is not None:
            raise CommandError("--identity-token-file and --token-cache require --trust-policy")
        if options["token_file"] is None:
            raise CommandError("--report-to requires --token-file or --trust-policy")
        return TokenFile(Path(options["token_file"]))
    if identity is None:
        raise CommandError("--trust-policy requires --identity-token-file")
    return ExchangedToken(connection, policy, Path(identity), cache and Path(cache))
