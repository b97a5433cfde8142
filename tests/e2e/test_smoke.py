from tests.server import LiveServer


def test_ready(live: LiveServer) -> None:
    assert live.request("GET", "/readyz").json() == {"status": "ok"}
