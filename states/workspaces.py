"""Names of workspaces in the remote backend, and their conversion to and from slugs.

``REMOTE_WORKSPACES`` defines the form. A name is split at the separator next to the
environment. If the slug of the environment contains the separator, the name needs ``__``, which a
slug cannot contain. A name without a separator is a component in ``REMOTE_DEFAULT_ENVIRONMENT``.
The parts of a name become slugs. If the name cannot be derived from the slugs, the state stores it.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db.models import Case, CharField, F, Q, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Concat

from states import slugs
from states.addresses import Names

# The length is sufficient for two slugs of 63 characters. HCP Terraform allows 90 characters.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
#: The maximum number of tags of a workspace.
MOST_TAGS: Final = 50
#: The form of a name, for messages.
DESCRIPTION: Final = "1 to 128 letters, digits, dashes and underscores"
_TAG_KEY: Final = re.compile(r"[A-Za-z0-9_.:/=+@ -]{1,128}", re.ASCII)
TAG_KEY_DESCRIPTION: Final = "1 to 128 letters, digits, spaces and the characters _.:/=+@-"
_FORM: Final = re.compile(r"\{(component|environment)\}([-_]{1,2})\{(component|environment)\}")
_APART: Final = "__"


class Form(NamedTuple):
    """The form of names: the separator, and whether the component precedes the environment."""

    separator: str
    component_first: bool

    @classmethod
    def read(cls, text: str) -> Form:
        """Parse ``REMOTE_WORKSPACES``.

        Raises:
            ValueError: the text is not ``{component}``, a separator and ``{environment}``, or the
                reverse.
        """
        found = _FORM.fullmatch(text)
        if found is None or found[1] == found[3]:
            raise ValueError(
                "the form must be {component}-{environment} or {environment}-{component}, with the "
                "separator -, _ or two of these characters"
            )
        return cls(found[2], found[1] == "component")

    def divide(self, name: str, separator: str) -> tuple[str, str]:
        """Split a name at the separator into the component and the environment."""
        if self.component_first:
            component, _, environment = name.rpartition(separator)
        else:
            environment, _, component = name.partition(separator)
        return component, environment

    def join(self, component: Any, environment: Any) -> tuple[Any, Any]:
        """Return the parts in the order of the name."""
        return (component, environment) if self.component_first else (environment, component)


def _form() -> Form:
    return Form.read(settings.REMOTE_WORKSPACES)


def is_name(text: str) -> bool:
    """Return whether the text can be the name of a workspace."""
    return _NAME.fullmatch(text) is not None


def is_tag_key(text: str) -> bool:
    """Return whether the text can be the key of a tag."""
    return _TAG_KEY.fullmatch(text) is not None


def names_of(name: str, application: str | None = None) -> Names:
    """Return the slugs of the component and the environment for a workspace name."""
    parts = _divided(name)
    component, environment = parts or (name, settings.REMOTE_DEFAULT_ENVIRONMENT)
    return Names(
        slugs.slug_of(component, "component"),
        slugs.slug_of(environment, "environment"),
        application,
    )


def _divided(name: str) -> tuple[str, str] | None:
    """Split a name into the component and the environment, or return None without a separator."""
    form = _form()
    for separator in (_APART, form.separator):
        if separator in name:
            return form.divide(name, separator)
    return None


def first_slugs(beginning: str) -> tuple[str, set[str]]:
    """Return the kind of the first slug in names, and the slugs that ``beginning`` can contain."""
    form, parts = _form(), _divided(beginning)
    slugs = {beginning.rstrip("-_")}  # the end may be a part of a separator
    if parts is not None:
        slugs.add(form.join(*parts)[0])
    return form.join("component", "environment")[0], slugs


def name_of(names: Names) -> str:
    """Return the workspace name for these slugs. ``names_of`` is the inverse."""
    form, (component, environment, _) = _form(), names
    if environment == settings.REMOTE_DEFAULT_ENVIRONMENT and form.separator not in component:
        return str(component)
    separator = _APART if form.separator in environment else form.separator
    return separator.join(form.join(component, environment))


def name_expression() -> Case:
    """Return an expression for the name of a state's workspace, which is stored or derived."""
    form = _form()
    component, environment = F("component__slug"), F("environment__slug")

    def joined(separator: str) -> Concat:
        first, last = form.join(component, environment)
        return Concat(first, Value(separator), last, output_field=CharField())

    is_default = Q(environment__slug=settings.REMOTE_DEFAULT_ENVIRONMENT)
    computed = Case(
        When(is_default & ~Q(component__slug__contains=form.separator), then=component),
        When(environment__slug__contains=form.separator, then=joined(_APART)),
        default=joined(form.separator),
        output_field=CharField(),
    )
    stored = KeyTextTransform("name", "workspace")
    return Coalesce(stored, computed, output_field=CharField())  # type: ignore[return-value]


def record_of(name: str, tags: dict[str, str]) -> dict[str, Any]:
    """Return the record of a workspace for ``State.workspace``."""
    stored = {} if name_of(names_of(name)) == name else {"name": name}
    return {**stored, "tags": tags}
