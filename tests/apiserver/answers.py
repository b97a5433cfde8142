"""Bytes on the wire."""

from __future__ import annotations

import base64
import gzip
import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.apiserver.recording import Fault, Object


def encoded(token: Object) -> str:
    text = json.dumps(token, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decoded(token: str) -> Object:
    decoded: Object = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return decoded


def send_json(handler: BaseHTTPRequestHandler, value: Any) -> None:
    body = json.dumps(value).encode()
    # Like the API server: compress large answers only.
    if len(body) > 128 * 1024 and "gzip" in handler.headers.get("Accept-Encoding", ""):
        send(handler, Fault(200, gzip.compress(body, 1), headers={"Content-Encoding": "gzip"}))
    else:
        send(handler, Fault(200, body))


def send(handler: BaseHTTPRequestHandler, answer: Fault) -> None:
    if answer.silent:
        handler.close_connection = True
        return
    handler.send_response(answer.status)
    handler.send_header("Content-Type", answer.content_type)
    handler.send_header("Content-Length", str(len(answer.body)))
    for name, value in answer.headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(answer.body if answer.cut is None else answer.body[: answer.cut])
    if answer.cut is not None:
        handler.close_connection = True
