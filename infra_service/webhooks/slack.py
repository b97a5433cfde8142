"""Messages for Slack's incoming webhooks: a sentence and the details of the event.

The format, the escapes and the limit of 3,000 characters per section come from
https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks and
https://docs.slack.dev/reference/block-kit/blocks/section-block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra_service.webhooks.event_types import TEST, TYPES
from states.lockinfo import terminal_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra_service.webhooks.models import WebhookEvent

#: The maximum number of characters of a value. An escaped character needs up to five characters,
#: and a section can contain 3,000.
_MOST: Final = 100
#: The maximum number of workloads or resources in a message.
_LISTED: Final = 4
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack_message(event: WebhookEvent) -> dict[str, Any]:
    """Return the payload: ``text`` for notifications, and a block for the channel."""
    title = "A test of a webhook" if event.type == TEST else TYPES[event.type].description
    lines = [f"{name}: {_escaped(value)}" for name, value in _details(event.data)]
    # Verbatim, so that Slack does not convert URLs and names in the values to links.
    section = {"type": "mrkdwn", "verbatim": True, "text": "\n".join([f"*{title}*", *lines])}
    return {
        "text": ", ".join([title, *lines[:1]]),
        "blocks": [{"type": "section", "text": section}],
    }


def _details(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the most important details: location, actor and reason."""
    if "environment_id" in data:
        component = data["component"] or data["component_id"]
        whole = f"{data['application']}/{component}" if data["application"] else component
        yield "State", f"{whole} in {data['environment'] or data['environment_id']}"
    else:
        yield "About", data.get("name") or data["id"]
    lock = data.get("lock") or {}
    if lock:
        owner = lock.get("who") or "an unknown client"
        yield "Locked by", f"{owner} for {lock.get('operation') or 'work'}"
    yield from _workloads(data)
    if checks := data.get("checks"):
        yield "Failing", ", ".join(checks)
    resources = data.get("resources") or []
    for resource in resources[:_LISTED]:
        yield resource["action"].capitalize(), resource["address"]
    changes = data.get("changes") or {}
    if others := sum(changes.values()) - len(resources[:_LISTED]):
        yield "And", f"{others:,} others"
    for name, label in (
        ("held_since", "Since"), ("expires_at", "Expires"), ("address", "Found at"),
        ("reason", "Reason"), ("pushed_by" if "pushed_by" in data else "actor", "By"),
    ):  # fmt: skip
        if data.get(name):
            yield label, data[name]


def _workloads(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the number of workloads of a deleted cluster, or the workloads with changed health."""
    workloads = data.get("workloads") or []
    if isinstance(workloads, int):
        yield "Workloads", f"{workloads:,}"
        return
    for workload in workloads[:_LISTED]:
        yield workload["to_health_status"] or "Gone", _change_of(workload)
    if workloads and (others := data["workloads_changed"] - len(workloads[:_LISTED])):
        yield "And", f"{others:,} others"


def _change_of(workload: dict[str, Any]) -> str:
    """Return the workload, its previous health, and the reason."""
    named = workload["name"] is not None
    which = f"{workload['namespace']}/{workload['name']}" if named else workload["id"]
    before = workload["from_health_status"]
    change = f"{which}, {'was ' + before if before else 'new'}"
    if workload["changes"] > 1:
        change += f", {workload['changes']:,} changes"
    reason = workload["status_reason"]
    return f"{change}: {reason}" if reason else change


def _escaped(value: Any) -> str:
    return terminal_text(str(value), _MOST).translate(_ESCAPED)
