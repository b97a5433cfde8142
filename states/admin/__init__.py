"""States and what they belong to, in the admin."""

from states.admin import catalogue, resources, states  # noqa: F401 - they register their admins
