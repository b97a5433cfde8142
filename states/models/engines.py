"""The engines that write states."""

from __future__ import annotations

from django.db import models


class Engine(models.TextChoices):
    """The engine that wrote a document, by the registries of its providers.

    ``MIXED`` is a document with providers of both registries; ``UNKNOWN`` has providers of neither,
    or no resources.
    """

    TERRAFORM = "TERRAFORM", "Terraform"
    OPENTOFU = "OPENTOFU", "OpenTofu"
    MIXED = "MIXED", "Mixed"
    UNKNOWN = "UNKNOWN", "Unknown"
