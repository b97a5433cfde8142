"""Object tools: a button on an object's page, a confirmation page, and the action."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., str]")


def _always(_obj: Any) -> bool:
    return True


def _nothing(_obj: Any) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTool:
    """The properties of a tool; ``permission`` is Django's, such as ``apikeys.revoke_apikey``."""

    label: str
    permission: str
    question: str
    form: type[forms.Form] = forms.Form
    #: Form values that override the query parameters.
    initial: Callable[[Any], dict[str, Any]] = field(default=_nothing)
    #: Form values that query parameters can override.
    defaults: Callable[[Any], dict[str, Any]] = field(default=_nothing)
    offered: Callable[[Any], bool] = field(default=_always)
    #: Whether to show the button. Without it the page still opens, and its action names the reason
    #: of the refusal.
    shown: Callable[[Any], bool] = field(default=_always)
    destructive: bool = False


def object_tool(**description: Any) -> Callable[[F], F]:
    """Turn an admin's method into a tool; list its name in the admin's ``tools``.

    The tool calls ``method(obj, actor, **fields)`` with the fields of its form and shows the
    returned message. The form shows an ``APIException`` of the action as its error.
    """

    def decorate(method: F) -> F:
        method.tool = ObjectTool(**description)  # type: ignore[attr-defined]  # on a function
        return method

    return decorate
