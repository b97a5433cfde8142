"""The roof of the service, and its version, which stands here alone."""

__version__ = "1.0.0"
