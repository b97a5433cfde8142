"""The admin of states and catalogue entries."""

from states.admin import catalogue, resources, states  # noqa: F401 - they register their admins
