"""Serializers of workloads and images."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from infra_service.lib.api.fields import KnownListField, TimestampField, described
from workloads.kubernetes.figures import DESCRIPTIONS, FIGURES, MEASURED
from workloads.managed import MOST_MANAGING, Join
from workloads.models import HEALTH_STATUSES, KINDS


@described("A container of a workload's template, with its status in all live pods.")
class ContainerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The name in the template, unique in the workload.")
    image = serializers.CharField(help_text="The image reference in the template.")
    restart_count = serializers.IntegerField(help_text="The number of restarts in all pods.")
    state = serializers.CharField(
        help_text="The worst state in any pod: running, waiting or terminated; empty if there is "
        "no pod."
    )
    ready = serializers.BooleanField(
        help_text="Whether the container is ready in every pod; false if there is no pod."
    )
    running = KnownListField(
        child=serializers.CharField(),
        help_text="References, with digests, to the images that the pods run. The list contains "
        "several references during a rollout or after a tag has moved. Absent while no digest is "
        "known.",
    )


@extend_schema_field(serializers.DictField(child=serializers.CharField()))
class LabelsField(serializers.JSONField):
    """A field for labels in their stored form."""


@extend_schema_field(ContainerSerializer(many=True))
class ContainersField(serializers.JSONField):
    """A field for containers in their stored form."""


@described("A workload. Usage figures are null if the cluster provides no metrics.")
class WorkloadSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(
        read_only=True,
        help_text="Assigned by the service. An object with a new Kubernetes uid gets a new id.",
    )
    cluster_id = serializers.UUIDField(
        read_only=True, help_text="The cluster in which the workload runs."
    )
    cluster_name = serializers.CharField(read_only=True, help_text="The cluster's current name.")
    namespace = serializers.CharField(read_only=True, help_text="The Kubernetes namespace.")
    name = serializers.CharField(
        read_only=True, help_text="The name, unique among the workloads of a kind in a namespace."
    )
    kind = serializers.ChoiceField(
        KINDS, read_only=True, help_text="The Kubernetes kind, which cannot change."
    )
    labels = LabelsField(
        read_only=True, help_text="The labels of the object. Keys and values are strings."
    )
    health_status = serializers.ChoiceField(
        HEALTH_STATUSES,
        read_only=True,
        help_text="Sent by the reporter, or derived from the workload's pods.",
    )
    status_reason = serializers.CharField(
        read_only=True,
        help_text="A code such as NoReadyReplicas, optionally followed by `: ` and a detail; or "
        "empty.",
    )
    replicas_desired = serializers.IntegerField(
        read_only=True,
        help_text="The number of replicas in the spec, or the number of eligible nodes for a "
        "DaemonSet.",
    )
    replicas_ready = serializers.IntegerField(
        read_only=True, help_text="Number of pods that pass their readiness probes."
    )
    replicas_available = serializers.IntegerField(
        read_only=True, help_text="Number of pods that have been ready for `minReadySeconds`."
    )
    # A field for each figure, in the order of the response.
    vars().update(
        {
            f.name: serializers.IntegerField(
                read_only=True, allow_null=f in MEASURED, help_text=DESCRIPTIONS[f.side]
            )
            for f in FIGURES
        }
    )
    containers = ContainersField(
        read_only=True, help_text="The containers of the template, without init containers."
    )
    last_updated_at = TimestampField(
        read_only=True,
        help_text="The later of the workload's last change and the cluster's last snapshot.",
    )


@described("A resource of a state that manages a workload.")
class ManagedBySerializer(serializers.Serializer[Any]):
    state_id = serializers.UUIDField(help_text="The state that contains the resource.")
    component_id = serializers.UUIDField(help_text="The component of the state.")
    environment_id = serializers.UUIDField(help_text="The environment of the state.")
    address = serializers.CharField(
        help_text="The address of the resource, such as `module.web.helm_release.shop`."
    )
    joined_by = serializers.ChoiceField(
        [join.value for join in Join],
        help_text="METADATA_UID: the resource has the uid of this workload. HELM_RELEASE: the "
        "namespace and the label app.kubernetes.io/instance match a helm_release. The release may "
        "belong to another cluster, because a state does not name its cluster.",
    )


@described("A workload and the resources of states that manage it.")
class ManagedWorkloadSerializer(WorkloadSerializer):
    managed = serializers.BooleanField(
        read_only=True,
        help_text="Whether a resource of any state manages the workload, including states that the "
        "token cannot read.",
    )
    managed_by = ManagedBySerializer(
        many=True,
        read_only=True,
        help_text=f"At most {MOST_MANAGING} resources of states that the token can read; empty for "
        "a token without state:read or with a cluster binding.",
    )


@described("An image that runs in clusters that the token can access.")
class ImageSerializer(serializers.Serializer[Any]):
    registry = serializers.CharField(help_text="The host of the registry, such as docker.io.")
    repository = serializers.CharField(help_text="The full name, such as docker.io/library/nginx.")
    tag = serializers.CharField(help_text="The tag; empty if only a digest identifies the image.")
    digest = serializers.CharField(help_text="The digest; empty while unknown.")
    workloads = serializers.IntegerField(
        source="in_workloads", help_text="Number of workloads that run the image."
    )
    clusters = serializers.IntegerField(
        source="in_clusters", help_text="Number of clusters in which the image runs."
    )
