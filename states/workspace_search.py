"""The order of lists of workspaces, and the search by name and tags.

On PostgreSQL, each part uses an index, so a list reads few states besides those that match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db.models import Q, Value
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.lookups import Exact, IStartsWith

from states import workspaces
from states.models import Application, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apikeys.bindings import Binding
    from states.models import StateQuerySet

#: The order of lists. An index on application and slug returns the components in this order.
ORDER: Final = ("component__slug", "environment__slug", "id")
#: Workspaces with a record, which are in a partial index.
_RECORDED: Final = Q(workspace__isnull=False)


def in_organization(name: str, binding: Binding) -> StateQuerySet:
    """Return the states of an organization within the binding."""
    states = State.objects.inside(binding)
    if name == settings.REMOTE_ORGANIZATION:
        return states.filter(component__application=None)
    application = Application.objects.filter(slug=name).values_list("pk", flat=True).first()
    if application is None:
        return states.none()
    return states.filter(component__application=application)


def named(states: StateQuerySet, text: str) -> StateQuerySet:
    """Return the workspaces whose names start with the text, without regard to case.

    If a name is derived from slugs, its first slug starts with the text, or the text contains the
    whole first slug and a separator. Other names are stored in records.
    """
    begins = IStartsWith(workspaces.name_expression(), text)
    kind, slugs = workspaces.first_slugs(text.lower())
    column = f"{kind}__slug"
    of_slug = Q((f"{column}__startswith", text.lower()), (f"{column}__in", slugs), _connector=Q.OR)
    if kind == "environment":  # the default environment is not in the name
        default = Q(environment__slug=settings.REMOTE_DEFAULT_ENVIRONMENT)
        of_slug |= default & Q(component__slug__startswith=text.lower())
    found = states.filter(of_slug, begins).values("pk")
    return states.filter(pk__in=found.union(states.filter(_RECORDED, begins).values("pk")))


class _TagValue(KeyTextTransform):
    """The value of a tag. On SQLite, Django would treat a key of digits as a list index."""

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL with the key in quotes. A key cannot contain quotes."""
        column, params, _keys = self.preprocess_lhs(compiler, connection)
        return f"JSON_EXTRACT({column}, %s)", (*params, f'$.tags."{self.key_name}"')


def tagged(
    states: StateQuerySet, keys: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> StateQuerySet:
    """Return the workspaces with all of these tags, by key or by key and value."""
    values = dict(pairs)
    wanted = {*keys, *values}
    if not all(map(workspaces.is_tag_key, wanted)) or len(wanted) > workspaces.MOST_TAGS:
        return states.none()
    if any(values[key] != value for key, value in pairs):  # a tag has a single value
        return states.none()
    keys = sorted(wanted - values.keys())
    conditions: list[Any] = [_RECORDED, Q(workspace__tags__has_keys=keys)] if keys else []
    for key, value in values.items():
        found = _TagValue(key, KeyTransform("tags", "workspace"))
        conditions += [_RECORDED, Exact(found, Value(value))]
    return states.filter(*conditions)
