from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm

from apikeys import logins
from infra_service.sign_on.configuration import OIDC, PASSWORD
from infra_service.sign_on.users import signs_on


class PasswordForm(AdminAuthenticationForm):
    """The admin's login form, for users without sign-on.

    For users with sign-on, a password would remain valid after they lose their groups. With
    ``ADMIN_LOGIN=oidc``, only superusers can use the form, for example while the provider is down.
    """

    def confirm_login_allowed(self, user: Any) -> None:
        """Reject all other users as if the password were wrong."""
        super().confirm_login_allowed(user)
        if settings.ADMIN_LOGIN == PASSWORD:
            return
        if signs_on(user) or (settings.ADMIN_LOGIN == OIDC and not user.is_superuser):
            request: Any = self.request  # the login view always sets it
            logins.record_refusal(request, "password", user)
            raise self.get_invalid_login_error()
