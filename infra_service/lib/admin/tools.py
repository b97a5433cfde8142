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
    """A tool. ``permission`` is a Django permission, such as ``apikeys.revoke_apikey``."""

    label: str
    permission: str
    question: str
    form: type[forms.Form] = forms.Form
    #: Form values that override query parameters.
    initial: Callable[[Any], dict[str, Any]] = field(default=_nothing)
    #: Form values that query parameters can override.
    defaults: Callable[[Any], dict[str, Any]] = field(default=_nothing)
    offered: Callable[[Any], bool] = field(default=_always)
    #: Whether to show the button. Without the button, the page is still available, and the action
    #: returns the reason for a rejection.
    shown: Callable[[Any], bool] = field(default=_always)
    destructive: bool = False


def object_tool(**description: Any) -> Callable[[F], F]:
    """Turn a method of an admin into a tool. The admin lists the method's name in ``tools``.

    The tool calls ``method(obj, actor, **fields)`` with the fields of its form, and shows the
    returned message. If the method raises an ``APIException``, the form shows the error.
    """

    def decorate(method: F) -> F:
        method.tool = ObjectTool(**description)  # type: ignore[attr-defined]  # on a function
        return method

    return decorate
