from django.urls import re_path

from states.views import StateBackendView, StateLockView

_KEY = r"^state/(?P<component_id>[^/]+)/env/(?P<environment_id>[^/]+)"

urlpatterns = [
    # With and without a final slash: a redirect would lose the state.
    re_path(_KEY + r"/?$", StateBackendView.as_view(), name="state-backend"),
    re_path(_KEY + r"/lock/?$", StateLockView.as_view(), name="state-lock"),
]
