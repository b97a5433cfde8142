"""Names and descriptions of the enums that serializers declare by their choices.

An enum of a struct has the name and the docstring of its class.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class EnumDoc(NamedTuple):
    """The description of an enum. ``choices`` is a list of values, or the path of the choices.

    The labels of the choices are part of the description if they explain the values.
    """

    choices: Any
    description: str
    has_explaining_labels: bool = False


#: Enumerations by the name of their component.
ENUMS: Final = {
    "Scope": EnumDoc(
        "apikeys.scopes.Scope.choices",
        "A permission of a key or token.",
        has_explaining_labels=True,
    ),
    "ApiKeyStatus": EnumDoc(
        "apikeys.querysets.ApiKeyStatus.choices",
        "Whether a key works, has expired or was revoked. A key that expired before its "
        "revocation counts as revoked.",
    ),
    "AccessTokenStatus": EnumDoc(
        "apikeys.querysets.AccessTokenStatus.choices",
        "Whether a token works, has expired or was revoked. A token expires or is revoked "
        "together with its API key or trust policy.",
    ),
    "AccessTokenKind": EnumDoc(
        "apikeys.models.AccessToken.Kind",
        "PERSONAL (secret `isp_…`) for a person, SERVICE (`iss_…`) for a program.",
    ),
    "TokenKind": EnumDoc(
        "apikeys.api.serializers.TOKEN_KINDS",
        "API_KEY (secret `isk_…`), or the kind of an access token.",
    ),
    "UnusableReason": EnumDoc(
        "apikeys.usability.UnusableReason.choices",
        "The reason why the service rejects a key or token. If several reasons apply, the value is "
        "the first in this order.",
    ),
    "IssuerKind": EnumDoc(
        "apikeys.models.Issuer.Kind",
        "The platform that signs the tokens. It determines which claims a trust policy must pin.",
        has_explaining_labels=True,
    ),
    "SigningAlgorithm": EnumDoc(
        "apikeys.federation.key_formats.ALGORITHMS",
        "An algorithm of JSON Web Signatures (RFC 7518, RFC 8037).",
    ),
    "RecordedChangeAction": EnumDoc(
        "infra_service.change_history.models.ACTIONS",
        "REPLACED: another `id` at the same address; MOVED: the same `id` at another address; "
        "TAINTED: marked for replacement; UNKNOWN: the version cannot be compared with the "
        "previous version; IMAGE_CHANGED, SCALED and HEALTH_CHANGED: only for workloads.",
    ),
    "RecordedChangeKind": EnumDoc(
        "infra_service.change_history.models.KINDS",
        "RESOURCE for a resource of a state, WORKLOAD for a workload of a cluster.",
    ),
    "WebhookEventType": EnumDoc(
        "infra_service.webhooks.event_types.NAMES",
        "The type of an event: the resource and the action.",
        has_explaining_labels=True,
    ),
    "WebhookFormat": EnumDoc(
        "infra_service.webhooks.models.WebhookEndpoint.Format",
        "The format of messages.",
        has_explaining_labels=True,
    ),
    "DeliveryStatus": EnumDoc(
        "infra_service.webhooks.models.Delivery.Status",
        "WAITING for the next attempt; DELIVERED after a 2xx response; FAILED after the last "
        "attempt, or because the webhook is disabled, has expired, or lost its key or owner.",
    ),
    "Engine": EnumDoc(
        "states.models.engines.Engine.choices",
        "The engine that wrote a document, derived from the registries of its providers: "
        "registry.terraform.io (TERRAFORM), registry.opentofu.org (OPENTOFU), both (MIXED), or "
        "another or no registry (UNKNOWN). A document that was encrypted on the client counts as "
        "OPENTOFU.",
    ),
    "WorkloadKind": EnumDoc("workloads.models.KINDS", "The Kubernetes kind of a workload."),
    "WorkloadJoin": EnumDoc(
        ["METADATA_UID", "HELM_RELEASE"],
        "The key by which a workload and a resource of a state were matched.",
    ),
    "WorkloadHealthStatus": EnumDoc(
        "workloads.models.HEALTH_STATUSES",
        "HEALTHY: runs as desired; DEGRADED: runs with fewer pods than desired, is starting or is "
        "being deleted; ERROR: does not run, and does not recover on its own; "
        "WORKLOAD_HEALTH_STATUS_UNSPECIFIED: the health is unknown.",
    ),
    "TransitionType": EnumDoc(
        "workloads.api.history_serializers.TRANSITION_TYPES",
        "APPEARED for a new workload, DISAPPEARED for a deleted workload, otherwise CHANGED.",
    ),
    "ClusterHealthStatus": EnumDoc(
        "workloads.cluster_health.HEALTH_STATUSES",
        "The health of a cluster. If several values apply, the field contains the first in this "
        "order.",
    ),
    "CollectionStatus": EnumDoc(
        "workloads.collection.COLLECTION_STATUSES",
        "The status of a cluster's reports.",
    ),
    "CollectionFailureReason": EnumDoc(
        "workloads.collection.FAILURE_REASONS",
        "UNAUTHENTICATED: the API server responds with 401; FORBIDDEN: 403; UNREACHABLE: no "
        "response; UNAVAILABLE: 5xx or 429; INVALID_ANSWER: a response that is not Kubernetes "
        "JSON; "
        "WATCH_LOST: watches end as soon as they begin; REPORT_REFUSED: the service rejected the "
        "report; OTHER: any other failure.",
    ),
    "ContainerState": EnumDoc(
        ["running", "terminated", "waiting"],
        "The state of a container, as in its pod's status.",
    ),
    "PodPhase": EnumDoc(
        ["Failed", "Pending", "Running", "Succeeded", "Unknown"],
        "The phase of a pod, as in its status.",
    ),
    "ConditionStatus": EnumDoc(
        ["False", "True", "Unknown"],
        "Whether the condition is met, in Kubernetes' notation.",
    ),
    "ErrorStatus": EnumDoc(
        "infra_service.openapi.answers.CODES",
        "A name from google.rpc.Code that corresponds to `code`.",
    ),
}
