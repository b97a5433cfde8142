"""A client of the state backend at an address of names on the live server."""

from __future__ import annotations

import uuid

from tests.e2e.backend import Backend
from tests.support.server import LiveServer


def new_name(kind: str) -> str:
    """Return an unused name on the shared server."""
    return f"{kind}-{uuid.uuid4().hex[:12]}"


class Named(Backend):
    """A state, at the address of its names."""

    def __init__(self, server: LiveServer, token: str, *names: str) -> None:
        super().__init__(server, token)
        self.names = names or (new_name("component"), new_name("environment"))

    @property
    def path(self) -> str:
        return f"/api/v1/state/at/{'/'.join(self.names)}"

    def by_ids(self) -> Backend:
        """Return the same existing state at the address of its ids."""
        query = f"?filter=field[%27component%27]=%27{self.names[-2]}%27"
        answer = self.server.request("GET", f"/api/v1/states{query}", token=self.token)
        (state,) = answer.json()["states"]
        other = Backend(self.server, self.token)
        other.component_id = uuid.UUID(state["component_id"])
        other.environment_id = uuid.UUID(state["environment_id"])
        return other
