from django.urls import include, path, re_path

from apikeys.resources import ResourceRouter
from workloads.views import ClusterViewSet, WorkloadViewSet

router = ResourceRouter()
router.register("clusters", ClusterViewSet, basename="cluster")

urlpatterns = [
    re_path(
        r"^clusters/(?P<cluster_id>[^/]+)/workloads/?$",
        WorkloadViewSet.as_view({"get": "list"}),
        name="workload-list",
    ),
    path("", include(router.urls)),
]
