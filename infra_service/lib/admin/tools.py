"""Object tools: a button on an object's page, a confirmation page, and the action."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django import forms
from rest_framework.exceptions import APIException

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

F = TypeVar("F", bound="Callable[..., str]")


#: The hidden input with ``ObjectTool.displayed``.
DISPLAYED: Final = "displayed"


class PageOutdated(APIException):
    """A change of the object after the page of a tool was opened. No API response contains it."""

    status_code = 409

    def __init__(self, change: str) -> None:
        super().__init__(
            f"{change} after this page was opened. Open the page again to check the change."
        )


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
    #: The property of the object on which the user bases the decision. The page contains it, and
    #: the method gets ``check``, a function that refuses a row with another property.
    displayed: Callable[[Any], Any] | None = None
    #: The change that an outdated page does not show, such as "Another version was stored".
    change: str = ""

    def displayed_of(self, obj: Any) -> str:
        """Return the text of ``displayed``, or an empty text if the tool has no such property."""
        return "" if self.displayed is None else str(self.displayed(obj))

    def condition(self, data: Mapping[str, str]) -> dict[str, Callable[[Any], None]]:
        """Return the argument ``check`` for the method, if the tool has ``displayed``."""
        if self.displayed is None:
            return {}

        def check(row: Any) -> None:
            if self.displayed_of(row) != data.get(DISPLAYED, ""):
                raise PageOutdated(self.change)

        return {"check": check}


def object_tool(**description: Any) -> Callable[[F], F]:
    """Turn a method of an admin into a tool. The admin lists the method's name in ``tools``.

    The tool calls ``method(obj, actor, **fields)`` with the fields of its form, and shows the
    returned message. If the method raises an ``APIException``, the form shows the error. A tool
    with ``displayed`` also passes ``check``, which the method must call for the row that it
    changes. It raises ``PageOutdated``.
    """

    def decorate(method: F) -> F:
        method.tool = ObjectTool(**description)  # type: ignore[attr-defined]  # on a function
        return method

    return decorate
