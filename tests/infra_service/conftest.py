"""API keys and their clients, as the tests of keys have them."""

from tests.apikeys.conftest import key_with, owner

__all__ = ["key_with", "owner"]
