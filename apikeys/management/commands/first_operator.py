"""Create the first operator of an installation."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apikeys.actions import create_first_operator
from apikeys.actors import Actor
from infra_service.lib.commandline.base import ServiceCommand


class Command(ServiceCommand):
    """Create the user ``operator`` with a token. Print the password and the token once."""

    help = (
        "Create a superuser named operator with a password and a token with all scopes, and print "
        "both. An existing user with this name stays unchanged."
    )
    examples = ("first_operator", "first_operator --json")

    @transaction.atomic
    def handle(self, *_args: Any, **_options: Any) -> None:
        """Create the user, unless it exists."""
        made = create_first_operator(Actor.of_command("first_operator"))
        if made is None:
            self.report({"created": False}, "A user named operator already exists.")
            return
        self.report(
            {"created": True, **made._asdict()},
            "Shown only once:",
            f"  export TF_HTTP_USERNAME=token TF_HTTP_PASSWORD={made.token}",
            f"  /admin/  user operator, password {made.password}",
        )
