"""Run the probes of a pod with their declared periods and thresholds."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
import time
from collections.abc import Callable
from typing import Any, Final


class Probe:
    """A probe of a container. An undeclared probe always succeeds."""

    def __init__(
        self,
        container: dict[str, Any],
        name: str,
        address: str,
        execute: Callable[[list[str]], subprocess.Popen[bytes]],
    ) -> None:
        self._declared: Final = container.get(f"{name}Probe")
        self._ports: Final = {p["name"]: p["containerPort"] for p in container.get("ports", [])}
        self._address, self._execute = address, execute
        self._is_final = name == "startup"
        # Before the first result, a container counts as alive, but not as started or ready.
        self._passed = self._declared is None or name == "liveness"
        self._failures = 0
        self._due = 0.0

    @property
    def is_exhausted(self) -> bool:
        """Return whether the consecutive failures have reached the threshold."""
        return self._failures >= (self._declared or {}).get("failureThreshold", 3)

    def passed(self) -> bool:
        """Run the probe if it is due, and return the current result."""
        if self._declared is None or (self._is_final and self._passed):
            return self._passed
        now = time.monotonic()
        self._due = self._due or now + self._declared.get("initialDelaySeconds", 0)
        if now >= self._due:
            self._due = now + self._declared.get("periodSeconds", 10)
            self._failures = 0 if self._succeeds(self._declared) else self._failures + 1
            self._passed = not self._failures or (self._passed and not self.is_exhausted)
        return self._passed

    def _succeeds(self, declared: dict[str, Any]) -> bool:
        timeout = declared.get("timeoutSeconds", 1)
        if "exec" in declared:
            process = self._execute(declared["exec"]["command"])
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout) == 0
            process.kill()
            return False
        asked = declared["httpGet"]
        connection = http.client.HTTPConnection(
            self._address, self._ports[asked["port"]], timeout=timeout
        )
        with (
            contextlib.closing(connection),
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            connection.request("GET", asked["path"])
            return 200 <= connection.getresponse().status < 400
        return False
