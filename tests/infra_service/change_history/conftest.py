from tests.states.conftest import backend, reader, seeing  # noqa: F401 - fixtures
