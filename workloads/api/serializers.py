"""Serializers of workloads and images."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from infra_service.lib.api.fields import KnownListField, TimestampField, described
from workloads.kubernetes.figures import DESCRIPTIONS, FIGURES, MEASURED
from workloads.managed import MOST_MANAGING, Join
from workloads.models import HEALTH_STATUSES, KINDS


@described("A container of a workload's template, over all its live pods.")
class ContainerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The name in the template, unique in the workload.")
    image = serializers.CharField(help_text="The image reference in the template.")
    restart_count = serializers.IntegerField(help_text="The sum over all pods.")
    state = serializers.CharField(
        help_text="The worst of running, waiting and terminated; empty without a pod."
    )
    ready = serializers.BooleanField(
        help_text="Whether it is ready in every pod; false without a pod."
    )
    running = KnownListField(
        child=serializers.CharField(),
        help_text="References with digests to the images of its pods: several during a rollout, or "
        "after a tag has moved. Absent while no digest is known.",
    )


@extend_schema_field(serializers.DictField(child=serializers.CharField()))
class LabelsField(serializers.JSONField):
    """Labels, as they are stored."""


@extend_schema_field(ContainerSerializer(many=True))
class ContainersField(serializers.JSONField):
    """Containers, as they are stored."""


@described("A workload. Usage is null without metrics.")
class WorkloadSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(
        read_only=True,
        help_text="Assigned by the service; a new uid in Kubernetes gets a new id.",
    )
    cluster_id = serializers.UUIDField(read_only=True, help_text="The cluster in which it runs.")
    cluster_name = serializers.CharField(read_only=True, help_text="The cluster's current name.")
    namespace = serializers.CharField(read_only=True, help_text="Its Kubernetes namespace.")
    name = serializers.CharField(
        read_only=True, help_text="Unique for the kind in its namespace and cluster."
    )
    kind = serializers.ChoiceField(
        KINDS, read_only=True, help_text="The Kubernetes kind; it cannot change."
    )
    labels = LabelsField(
        read_only=True, help_text="The labels of the object: keys and values are strings."
    )
    health_status = serializers.ChoiceField(
        HEALTH_STATUSES,
        read_only=True,
        help_text="Sent by the reporter, or derived from the workload's pods.",
    )
    status_reason = serializers.CharField(
        read_only=True,
        help_text="A code such as NoReadyReplicas, and optionally `: ` with a detail; or empty.",
    )
    replicas_desired = serializers.IntegerField(
        read_only=True,
        help_text="The value in the spec; for a DaemonSet, the number of eligible nodes.",
    )
    replicas_ready = serializers.IntegerField(
        read_only=True, help_text="Pods that pass their readiness probes."
    )
    replicas_available = serializers.IntegerField(
        read_only=True, help_text="Pods that have been ready for `minReadySeconds`."
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
        help_text="The later of its last change and the cluster's last snapshot.",
    )


@described("A resource of a state that manages a workload.")
class ManagedBySerializer(serializers.Serializer[Any]):
    state_id = serializers.UUIDField(help_text="The state that has the resource.")
    component_id = serializers.UUIDField(help_text="The component of the state.")
    environment_id = serializers.UUIDField(help_text="The environment of the state.")
    address = serializers.CharField(
        help_text="The address of the resource, such as `module.web.helm_release.shop`."
    )
    joined_by = serializers.ChoiceField(
        [join.value for join in Join],
        help_text="METADATA_UID: the uid is this object's. HELM_RELEASE: the namespace, and the "
        "label app.kubernetes.io/instance, match a helm_release, which may belong to "
        "another cluster: a state does not contain its cluster.",
    )


@described("A workload, with the resources of states that manage it.")
class ManagedWorkloadSerializer(WorkloadSerializer):
    managed = serializers.BooleanField(
        read_only=True,
        help_text="Whether a resource of any state manages it, including states that you cannot "
        "see.",
    )
    managed_by = ManagedBySerializer(
        many=True,
        read_only=True,
        help_text=f"At most {MOST_MANAGING} resources of states that you can read; empty for a "
        "token without state:read or with a cluster binding.",
    )


@described("An image that runs in clusters that the token can access.")
class ImageSerializer(serializers.Serializer[Any]):
    registry = serializers.CharField(help_text="The host, such as docker.io.")
    repository = serializers.CharField(help_text="The full name, such as docker.io/library/nginx.")
    tag = serializers.CharField(help_text="Empty if only a digest identifies the image.")
    digest = serializers.CharField(help_text="Empty while unknown.")
    workloads = serializers.IntegerField(
        source="in_workloads", help_text="Number of workloads that run it."
    )
    clusters = serializers.IntegerField(
        source="in_clusters", help_text="Number of clusters in which it runs."
    )
