"""Requests to an API server, without the code under test."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import urllib3

MERGE = "application/merge-patch+json"


class RefusedError(OSError):
    """An unsuccessful response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message[:300]}")
        self.status = status


class Api:
    """A client of an API server with a token."""

    def __init__(self, url: str, token: str, certificate: Path) -> None:
        self.url, self.token = url, token
        self._certificate = certificate
        self._pool: urllib3.PoolManager | None = None

    def get(self, path: str, *, raw: bool = False, accept: str = "application/json") -> Any:
        """Return an object or, with `raw`, the status and the body."""
        status, body = self._send("GET", path, headers={"Accept": accept})
        if raw:
            return status, body
        return self._object(status, body)

    def answer(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """Return the status, the content type and the body of the response to a GET."""
        answer = self._request("GET", path, None, {"Accept": accept})
        return answer.status, answer.headers.get("Content-Type", ""), answer.data

    def items(self, path: str) -> list[Any]:
        found: list[Any] = self.get(path)["items"] or []
        return found

    def post(self, path: str, value: object) -> Any:
        return self._object(*self._send("POST", path, value))

    def put(self, path: str, value: object) -> Any:
        return self._object(*self._send("PUT", path, value))

    def patch(self, path: str, value: object) -> Any:
        return self._object(*self._send("PATCH", path, value, {"Content-Type": MERGE}))

    def delete(self, path: str, **options: object) -> None:
        """Delete an object, which may be missing."""
        status, body = self._send("DELETE", path, options or None)
        if status != 404:
            self._object(status, body)

    def apply(self, documents: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> None:
        """Create the objects in a manifest that do not exist yet."""
        for document in documents:
            group = document["apiVersion"]
            base = f"/apis/{group}" if "/" in group else f"/api/{group}"
            namespace = document["metadata"].get("namespace")
            if namespace:
                base += f"/namespaces/{namespace}"
            plural = f"{document['kind'].lower()}s"
            try:
                self.post(f"{base}/{plural}", document)
            except RefusedError as error:
                if error.status != 409:
                    raise

    def _send(
        self, method: str, path: str, value: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        answer = self._request(method, path, value, headers)
        return answer.status, answer.data

    def _request(
        self, method: str, path: str, value: object, headers: dict[str, str] | None
    ) -> urllib3.BaseHTTPResponse:
        if self._pool is None:
            # The server creates its certificate when it starts.
            context = ssl.create_default_context(cafile=str(self._certificate))
            self._pool = urllib3.PoolManager(ssl_context=context, maxsize=8, retries=False)
        try:
            return self._pool.request(
                method,
                f"{self.url}{path}",
                body=None if value is None else json.dumps(value),
                headers={
                    "Authorization": f"Bearer {self.token}",
                    "Content-Type": "application/json",
                    **(headers or {}),
                },
                timeout=60,
            )
        except urllib3.exceptions.HTTPError as error:
            raise OSError(str(error)) from error

    @staticmethod
    def _object(status: int, body: bytes) -> Any:
        if status >= 300:
            raise RefusedError(status, body.decode(errors="replace"))
        return json.loads(body)
