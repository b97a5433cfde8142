from django.urls import re_path

from infra_service.change_history.api.views import ChangeOfStateViewSet, ChangeViewSet

_OF_STATE = r"^states/(?P<state_id>[0-9A-Za-z._~-]+)/changes/?$"

urlpatterns = [
    re_path(r"^changes/?$", ChangeViewSet.as_view({"get": "list"}), name="change-list"),
    re_path(
        r"^changes:summary/?$", ChangeViewSet.as_view({"get": "summary"}), name="change-summary"
    ),
    re_path(_OF_STATE, ChangeOfStateViewSet.as_view({"get": "list"}), name="change-of-state-list"),
]
