from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm

from apikeys import logins
from infra_service.sign_on.configuration import OIDC, PASSWORD
from infra_service.sign_on.people import signs_on


class PasswordForm(AdminAuthenticationForm):
    """The admin's own, for who does not sign on.

    A password would outlast the groups of who does. With ``ADMIN_LOGIN=oidc`` it is for superusers
    alone, who let themselves in when the provider is away.
    """

    def confirm_login_allowed(self, user: Any) -> None:
        """Refuse the others as if the password were wrong."""
        super().confirm_login_allowed(user)
        if settings.ADMIN_LOGIN == PASSWORD:
            return
        if signs_on(user) or (settings.ADMIN_LOGIN == OIDC and not user.is_superuser):
            request: Any = self.request  # the log-in always gives it
            logins.record_refusal(request, "password", user)
            raise self.get_invalid_login_error()
