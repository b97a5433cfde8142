"""Differences between check results, which documents have contained since Terraform 1.2.

``check`` blocks, preconditions, postconditions and, in OpenTofu, variables have results. A document
contains a summary for each block of the configuration, and a result for each object of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from states.document import format4, masking
from states.document.address_text import printable
from states.document.answers import ChangeAction, CheckResultChange, FailureMessages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from states.document.format4 import Document
    from states.document.secret_values import Secrets
    from states.document.work_limit import Effort


class _Object(msgspec.Struct, frozen=True, gc=False):
    object_addr: format4.Name | None = None
    status: str | None = None
    failure_messages: list[str] | None = None


class _Sum(msgspec.Struct, frozen=True, gc=False):
    object_kind: str | None = None
    config_addr: format4.Name | None = None
    status: str | None = None
    objects: list[_Object] | None = None


#: The status of a failed check, or of a condition that Terraform could not evaluate (``error``).
_FAILING: Final = frozenset({"fail", "error"})
#: Maximum failing checks per state, and characters of an address. Lists of states show them.
MOST_FAILING: Final = 50
MOST_OF_ADDRESS: Final = 200
_sums: Final = msgspec.json.Decoder(list[_Sum] | None)


class CheckResult(NamedTuple):
    """The status of an object or block. ``sum`` is the status of a block with the same address."""

    status: str
    messages: Sequence[str]
    sum: str | None = None


@dataclass(frozen=True, slots=True)
class CheckChange:
    """A changed result. An absent ``before`` or ``after`` is None."""

    address: str
    kind: str
    before: CheckResult | None
    after: CheckResult | None

    @property
    def action(self) -> ChangeAction:
        return ChangeAction.of(self.before, self.after)


def compare(before: Document, after: Document, effort: Effort) -> list[CheckChange]:
    """Return the changed results, ordered by address.

    Raises:
        StateFormatUnsupported: the results do not have Terraform's format.
        StateTooComplex: the comparison would need too much memory.
    """
    if before.check_results == after.check_results:
        return []
    old, new = _results(before, effort), _results(after, effort)
    return [
        CheckChange(*key, old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _results(document: Document, effort: Effort) -> dict[tuple[str, str], CheckResult]:
    """Return the results by the address and kind of their objects."""
    effort.admit(document.check_results)
    found: dict[tuple[str, str], CheckResult] = {}
    for block in format4.decode_with(_sums, document.check_results) or ():
        objects = block.objects or ()
        effort.spend(1 + len(objects))
        of_block = (block.config_addr or "", block.object_kind or "")
        found[of_block] = CheckResult(block.status or "", ())
        for one in objects:
            key = (one.object_addr or "", of_block[1])
            sum_ = block.status if key == of_block else None
            found[key] = CheckResult(one.status or "", one.failure_messages or (), sum_)
    return found


def failing_checks(document: Document, effort: Effort) -> list[str]:
    """Return the first addresses of ``check`` blocks that fail or cannot be evaluated, in order.

    Raises:
        StateFormatUnsupported, StateTooComplex: see ``compare``.
    """
    effort.admit(document.check_results)
    blocks = format4.decode_with(_sums, document.check_results) or ()
    effort.spend(len(blocks))
    found = sorted(
        printable(block.config_addr or "")
        for block in blocks
        if block.object_kind == "check" and block.status in _FAILING
    )
    return [address[:MOST_OF_ADDRESS] for address in found[:MOST_FAILING]]


def describe(change: CheckChange, secrets: Secrets | None, _effort: Effort) -> CheckResultChange:
    """Return a change in API form, without the values that ``secrets`` hide."""
    sides = [change.before, change.after]
    messages: list[Any] = [list(side.messages) if side else [] for side in sides]
    if secrets is not None:
        messages = masking.masked(secrets, *((texts, {}) for texts in messages))
    before, after = (side and side.status for side in sides)
    return CheckResultChange(
        object=printable(change.address),
        object_kind=change.kind,
        action=change.action,
        before=before,
        after=after,
        failure_messages=FailureMessages(*messages),
    )
