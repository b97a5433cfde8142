"""Errors of requests about clusters and workloads."""

from __future__ import annotations

from rest_framework.exceptions import APIException, NotFound


class ClusterNotFound(NotFound):
    meaning = "The cluster does not exist, or is outside the binding of the token."
    default_code = "CLUSTER_NOT_FOUND"
    default_detail = "The cluster does not exist."
    advice = "GET /api/v1/clusters lists the clusters that your token can access, with their ids."


class ClusterExists(APIException):
    meaning = "Another cluster has this name."
    status_code = 409
    rpc_status = "ALREADY_EXISTS"
    default_code = "CLUSTER_EXISTS"
    default_detail = "Another cluster has this name. Choose another name."
