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
    """How a tool is offered; ``permission`` is Django's, such as ``apikeys.revoke_apikey``."""

    label: str
    permission: str
    question: str
    form: type[forms.Form] = forms.Form
    #: What stands in the form, whatever the address says.
    initial: Callable[[Any], dict[str, Any]] = field(default=_nothing)
    #: What stands in the form unless the address says otherwise.
    defaults: Callable[[Any], dict[str, Any]] = field(default=_nothing)
    offered: Callable[[Any], bool] = field(default=_always)
    destructive: bool = False


def object_tool(**description: Any) -> Callable[[F], F]:
    """Make a tool of an admin's method, which is named in the admin's ``tools``.

    The method is called as ``method(obj, actor, **fields)`` with the fields of the tool's form, and
    returns what to tell the person. An ``APIException`` of the action is told as the form's error.
    """

    def decorate(method: F) -> F:
        method.tool = ObjectTool(**description)  # type: ignore[attr-defined]  # on a function
        return method

    return decorate
