"""An ordinary state backend: ``get_or_create``, an update, and a history row per change.

It has no authentication, audit log or encryption, and the lock is its only rule. Two clients that
lock simultaneously may both succeed.
"""

from __future__ import annotations

from typing import Any

from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tools.bench.models import NaiveHistory, NaiveState


class NaiveBackend(APIView):
    public = True
    authentication_classes: Any = ()
    permission_classes: Any = ()
    parser_classes = [JSONParser]
    renderer_classes = [JSONRenderer]
    http_method_names = ["get", "post", "lock", "unlock"]

    def get(self, _request: Request, **key: Any) -> Response:
        return Response(NaiveState.objects.get(**key).document)

    def post(self, request: Request, **key: Any) -> Response:
        state, _ = NaiveState.objects.get_or_create(**key)
        if state.lock and state.lock["ID"] != request.query_params.get("ID"):
            return Response(state.lock, 423)
        return self._change(state, "push", document=request.data)

    def lock(self, request: Request, **key: Any) -> Response:
        state, _ = NaiveState.objects.get_or_create(**key)
        if state.lock:
            return Response(state.lock, 423)
        return self._change(state, "lock", lock=request.data)

    def unlock(self, _request: Request, **key: Any) -> Response:
        state, _ = NaiveState.objects.get_or_create(**key)
        return self._change(state, "unlock", lock=None)

    def _change(self, state: NaiveState, action: str, **values: Any) -> Response:
        NaiveState.objects.filter(pk=state.pk).update(**values)
        NaiveHistory.objects.create(state=state, action=action, document=values.get("document"))
        return Response({})
