"""Base classes of all admin pages.

``KeysetAdmin`` paginates without counting. ``ReadOnlyAdmin`` changes objects only through tools.
``object_tool`` turns a method into a tool: a button on the object's page and a confirmation page.
``EditableAdmin`` also adds and changes objects through actions, with an ``EditForm``.
"""

from infra_service.lib.admin.editable import EditableAdmin, EditForm
from infra_service.lib.admin.model_admin import KeysetAdmin, ReadOnlyAdmin
from infra_service.lib.admin.tools import object_tool

__all__ = ["EditForm", "EditableAdmin", "KeysetAdmin", "ReadOnlyAdmin", "object_tool"]
