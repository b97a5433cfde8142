"""The engines that write states."""

from __future__ import annotations

from django.db import models


class Engine(models.TextChoices):
    """The engine that wrote a document, detected from the registries of its providers.

    ``MIXED`` is a document with providers from both registries. ``UNKNOWN`` is a document without
    resources, or with providers only from other registries.
    """

    TERRAFORM = "TERRAFORM", "Terraform"
    OPENTOFU = "OPENTOFU", "OpenTofu"
    MIXED = "MIXED", "Mixed"
    UNKNOWN = "UNKNOWN", "Unknown"
