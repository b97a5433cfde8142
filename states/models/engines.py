"""The engines that write states.

A document does not contain the name of its engine. However, Terraform and OpenTofu add the host of
their own registry to the address of a provider, unless the configuration contains a host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from collections.abc import Iterable


class Engine(models.TextChoices):
    """The engine that wrote a document, detected from the registries of its providers.

    ``MIXED`` is a document with providers from both registries. ``UNKNOWN`` is a document without
    resources, or with providers only from other registries.
    """

    TERRAFORM = "TERRAFORM", "Terraform"
    OPENTOFU = "OPENTOFU", "OpenTofu"
    MIXED = "MIXED", "Mixed"
    UNKNOWN = "UNKNOWN", "Unknown"

    @classmethod
    def of(cls, providers: Iterable[str]) -> Engine:
        """Return the engine of a document with these provider addresses."""
        hosts = {provider.partition("/")[0] for provider in providers}
        by_terraform = "registry.terraform.io" in hosts
        by_opentofu = "registry.opentofu.org" in hosts
        if by_terraform and by_opentofu:
            return cls.MIXED
        if by_terraform:
            return cls.TERRAFORM
        return cls.OPENTOFU if by_opentofu else cls.UNKNOWN
