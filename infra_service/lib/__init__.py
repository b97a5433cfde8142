"""Libraries: modules that do not import apps or read their settings."""
