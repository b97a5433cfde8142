"""The project's URLs with the remote backend, which the tests' settings leave out."""

from django.urls import include, path

from infra_service import urls as project

handler400, handler403 = project.handler400, project.handler403
handler404, handler500 = project.handler404, project.handler500

urlpatterns = [path("", include("states.remote.urls")), *project.urlpatterns]
