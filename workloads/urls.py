from django.urls import include, path, re_path

from infra_service.lib.api.viewsets import ResourceRouter
from workloads.api.clusters import ClusterViewSet
from workloads.api.fleet import FleetViewSet
from workloads.api.history import HistoryViewSet
from workloads.api.images import ImageViewSet
from workloads.api.workloads import WorkloadViewSet

router = ResourceRouter()
router.register("clusters", ClusterViewSet, basename="cluster")

urlpatterns = [
    re_path(r"^images/?$", ImageViewSet.as_view({"get": "list"}), name="image-list"),
    re_path(r"^workloads/?$", FleetViewSet.as_view({"get": "list"}), name="fleet-list"),
    re_path(
        r"^workloads:summary/?$", FleetViewSet.as_view({"get": "summary"}), name="fleet-summary"
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads/?$",
        WorkloadViewSet.as_view({"get": "list", "put": "replace", "patch": "amend"}),
        name="workload-list",
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads:summary/?$",
        WorkloadViewSet.as_view({"get": "summary"}),
        name="workload-summary",
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads:report-failure/?$",
        WorkloadViewSet.as_view({"post": "report_failure"}),
        name="workload-report-failure",
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads/(?P<id>[^/]+)/?$",
        WorkloadViewSet.as_view({"get": "retrieve"}),
        name="workload",
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads/(?P<workload_id>[^/]+)/transitions/?$",
        HistoryViewSet.as_view({"get": "list"}),
        name="workload-transitions",
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads/(?P<workload_id>[^/]+)/availability/?$",
        HistoryViewSet.as_view({"get": "availability"}),
        name="workload-availability",
    ),
    path("", include(router.urls)),
]
