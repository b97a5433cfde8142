"""The admin's site: its names, its overview, its log-in."""

from __future__ import annotations

from django.contrib.admin import AdminSite


class ServiceAdminSite(AdminSite):
    """The admin of the service."""

    site_header = "Infrastructure management service"
    site_title = "Infrastructure management service"
    index_title = "Overview"
    site_url = None
    empty_value_display = "–"  # noqa: RUF001 - an en dash is meant
