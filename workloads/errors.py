"""Errors of requests about clusters and workloads."""

from __future__ import annotations

from rest_framework.exceptions import APIException, NotFound


class ClusterNotFound(NotFound):
    meaning = "There is none, or the token does not reach it."
    default_code = "CLUSTER_NOT_FOUND"
    default_detail = "There is no such cluster."
    advice = "GET /api/v1/clusters lists those that your token reaches, with their ids."


class ClusterExists(APIException):
    meaning = "Clusters are told apart by their names, too."
    status_code = 409
    rpc_status = "ALREADY_EXISTS"
    default_code = "CLUSTER_EXISTS"
    default_detail = "Another cluster has this name."
