from django.urls import include, path, re_path

from infra_service.api.viewsets import ResourceRouter
from workloads.api.reports import ReportedWorkloadViewSet
from workloads.api.views import ClusterViewSet

router = ResourceRouter()
router.register("clusters", ClusterViewSet, basename="cluster")

urlpatterns = [
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads/?$",
        ReportedWorkloadViewSet.as_view({"get": "list", "put": "replace", "patch": "amend"}),
        name="workload-list",
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads:summary/?$",
        ReportedWorkloadViewSet.as_view({"get": "summary"}),
        name="workload-summary",
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads:report-failure/?$",
        ReportedWorkloadViewSet.as_view({"post": "report_failure"}),
        name="workload-report-failure",
    ),
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads/(?P<id>[^/]+)/?$",
        ReportedWorkloadViewSet.as_view({"get": "retrieve"}),
        name="workload",
    ),
    path("", include(router.urls)),
]
