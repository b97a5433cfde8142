"""States and what they belong to, in the admin."""

from states.admin import catalogue, states  # noqa: F401 - they register their admins
