"""The service's root package, with the single definition of its version."""

__version__ = "1.0.0"
