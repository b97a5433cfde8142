"""Base classes of all admin pages.

``KeysetAdmin`` lists without counting, ``ReadOnlyAdmin`` changes nothing but by its tools, and
``object_tool`` makes one of a method: a button on an object's page, which asks before it acts.
``EditableAdmin`` also adds and changes, by our actions.
"""

from infra_service.lib.admin.editable import EditableAdmin
from infra_service.lib.admin.model_admin import KeysetAdmin, ReadOnlyAdmin
from infra_service.lib.admin.tools import object_tool

__all__ = ["EditableAdmin", "KeysetAdmin", "ReadOnlyAdmin", "object_tool"]
