"""Random changes of the catalogue against a model of its rules in plain Python.

The model is docs/reference/states-and-workloads.md#slugs: a slug of a parent belongs to a single
entry. Its address leads to another entry only after a ``state:admin`` caller, bound to both
entries, sends that slug.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from apikeys.bindings import Binding
from states import addresses
from states.models import Environment
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.states.conftest import document
from tests.states.test_named import Named
from tests.states.test_slugs import KINDS, sent

#: Names and the slugs derived from them; null stands for the slug of the kind.
NAMES: Final = {"a": "a", "A!": "a", "b": "b", "\uff42": "b", "a-2": "a-2", "Ж": None, "Ю": None}
SLUGS: Final = ("a", "b")
kinds = st.sampled_from(("environment", "component"))
callers = st.sampled_from(("admin", "writer", "shop", "cluster of one"))


@dataclass
class Entry:
    kind: str
    parent: str | None
    name: str
    slug: str | None
    require_lock: bool = False


class Model(RuleBasedStateMachine):
    """The rules; ``owners`` maps each slug ever used to its entry."""

    clients: dict[str, ApiClient]
    applications: dict[str, str]
    entries = Bundle("entries")

    def __init__(self) -> None:
        super().__init__()
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.known: dict[str, Entry] = {}
        self.owners: dict[tuple[str, str | None, str], str] = {}

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.savepoint.__exit__(None, None, None)

    # The rules in plain Python.

    def covers(self, caller: str, entry: Entry) -> bool:
        """Return whether the caller may take over a former slug of the entry."""
        if caller == "shop":
            return entry.kind == "component" and entry.parent == "shop"
        return caller == "admin"

    def may_create(self, caller: str, kind: str, parent: str | None) -> bool:
        if caller == "shop":
            return kind == "environment" or parent == "shop"
        return caller != "cluster of one"

    def is_taken(self, caller: str, entry: str | None, place: Any, *, sent: bool) -> bool:
        """Return whether the slug belongs to another entry that the caller may not take it from."""
        owner = self.owners.get(place)
        if owner in (None, entry):
            return False
        of_owner = self.known[str(owner)]
        is_current = (of_owner.kind, of_owner.parent, of_owner.slug) == place
        return is_current or not sent or not self.covers(caller, of_owner)

    def free_slug(self, kind: str, parent: str | None, name: str) -> str:
        best = NAMES[name] or kind
        choices = [best, *(f"{best}-{number}" for number in range(2, 10))]
        return next(slug for slug in choices if (kind, parent, slug) not in self.owners)

    def exists(self, kind: str, parent: str | None, name: str) -> bool:
        same = (e.name for e in self.known.values() if (e.kind, e.parent) == (kind, parent))
        return name in same or (kind, parent, NAMES[name]) in self.owners

    # Actions of the callers.

    @rule(
        target=entries, kind=kinds, caller=callers, name=st.sampled_from(sorted(NAMES)),
        slug=st.none() | st.sampled_from(SLUGS), suffix=st.booleans(),
        parent=st.sampled_from((None, "shop", "bank")),
    )  # fmt: skip
    def create(
        self,
        *,
        kind: str,
        caller: str,
        name: str,
        slug: str | None,
        suffix: bool,
        parent: str | None,
    ) -> Any:
        fields: dict[str, Any] = {"name": name, "slug": slug, "slug_suffix": suffix}
        if kind == "environment":
            parent = None
        elif parent:
            fields["application_id"] = self.applications[parent]
        answer = sent(self.clients[caller], "POST", kind, **fields)
        if not self.may_create(caller, kind, parent):
            assert answer.status_code in (400, 403)
            return multiple()
        if slug is not None:
            refusal = (
                "SLUG_TAKEN" if self.is_taken(caller, None, (kind, parent, slug), sent=True) else ""
            )
        else:
            refusal = "" if suffix or not self.exists(kind, parent, name) else "ALREADY_EXISTS"
        if refusal:
            assert (answer.status_code, error_reason(answer)) == (409, refusal)
            return multiple()
        assert answer.status_code == 201, answer.content
        made = answer.json()[kind]
        expected = slug or self.free_slug(kind, parent, name)
        assert made["slug"] == expected
        self.known[made["id"]] = Entry(kind, parent, name, expected)
        self.owners[kind, parent, expected] = made["id"]
        return made["id"]

    @rule(target=entries, kind=kinds)
    def register_by_id(self, kind: str) -> str:
        """As a push at an address of ids does: without a name and a slug."""
        entry_id = str(KINDS[kind].objects.create().pk)
        self.known[entry_id] = Entry(kind, None, "", None)
        return entry_id

    @rule(
        entry_id=entries, caller=callers, changes=st.fixed_dictionaries({}, optional={
            "name": st.sampled_from(sorted(NAMES)), "slug": st.none() | st.sampled_from(SLUGS),
            "parent": st.sampled_from((None, "shop", "bank")), "require_lock": st.booleans(),
        }),
    )  # fmt: skip
    def change(self, entry_id: str, caller: str, changes: dict[str, Any]) -> None:
        entry = self.known[entry_id]
        parent, body = entry.parent, dict(changes)
        if entry.kind == "environment":
            body.pop("parent", None)
        else:
            body.pop("require_lock", None)
            if "parent" in body:
                parent = body.pop("parent")
                body["application_id"] = parent and self.applications[parent]
        answer = sent(self.clients[caller], "PATCH", entry.kind, entry_id, **body)
        if not self.covers(caller, entry) or not self.may_create(caller, entry.kind, parent):
            assert answer.status_code in (400, 403, 404)
            return
        slug = changes.get("slug") or entry.slug
        if slug is None and body.get("name", entry.name) != entry.name:
            slug = self.free_slug(entry.kind, parent, body["name"])
        place = (entry.kind, parent, slug)
        moves = slug is not None and (parent, slug) != (entry.parent, entry.slug)
        if moves and self.is_taken(caller, entry_id, place, sent=bool(changes.get("slug"))):
            assert (answer.status_code, error_reason(answer)) == (409, "SLUG_TAKEN")
            return
        assert answer.status_code == 200, answer.content
        assert answer.json()[entry.kind]["slug"] == slug
        if slug is not None:
            self.owners[entry.kind, parent, slug] = entry_id
        entry.parent, entry.slug, entry.name = parent, slug, body.get("name", entry.name)
        entry.require_lock = body.get("require_lock", entry.require_lock)

    @rule(
        component=st.sampled_from(SLUGS), environment=st.sampled_from(SLUGS),
        parent=st.sampled_from((None, "shop")),
    )  # fmt: skip
    def push(self, component: str, environment: str, parent: str | None) -> None:
        names = "/".join(filter(None, (parent, component, environment)))
        owner = self.owners.get(("environment", None, environment))
        demanded = owner is not None and self.known[owner].require_lock
        answer = Named(self.clients["writer"], names).push(document(1))

        if demanded:
            assert error_reason(answer) == "LOCK_REQUIRED"
            if ("component", parent, component) not in self.owners:  # nothing is left of it
                place = component, self.parent_id(parent)
                assert addresses.find_id(KINDS["component"], *place) is None
            return
        assert answer.status_code == 200, answer.content
        for kind, slug, of in (
            ("component", component, parent),
            ("environment", environment, None),
        ):
            if (kind, of, slug) not in self.owners:
                found = addresses.find_id(KINDS[kind], slug, self.parent_id(of))
                self.known[str(found)] = Entry(kind, of, slug, slug)
                self.owners[kind, of, slug] = str(found)

    @rule(first=entries, second=entries, caller=callers, sent=st.booleans())
    def ask_for_a_former_slug(self, first: str, second: str, caller: str, sent: bool) -> None:
        """At random this is rare: a creation, and a move with or without the slug."""
        self.change(first, "admin", {"parent": "shop", "slug": "a"})
        self.change(first, "admin", {"slug": "b"})
        self.change(second, "admin", {"parent": None, "slug": "a"})
        former = {"kind": self.known[first].kind, "parent": self.known[first].parent}
        if not sent:
            self.change(second, caller, {"parent": "shop"})
        self.create(caller=caller, name="b", slug="a", suffix=False, **former)

    # Invariants, checked after each action.

    def parent_id(self, parent: str | None) -> uuid.UUID:
        return uuid.UUID(self.applications[parent]) if parent else addresses.NO_PARENT

    @invariant()
    def addresses_lead_to_their_owners(self) -> None:
        for (kind, parent, slug), owner in self.owners.items():
            found = addresses.find_id(KINDS[kind], slug, self.parent_id(parent))
            assert str(found) == owner, (kind, parent, slug)

    @invariant()
    def demands_stay(self) -> None:
        demanding = Environment.objects.filter(require_lock=True).values_list("pk", flat=True)
        assert set(map(str, demanding)) == {i for i, e in self.known.items() if e.require_lock}


@pytest.mark.long
def test_the_catalogue_follows_its_rules(db: None, client_with: ClientWith) -> None:
    every = ("state:read", "state:write", "state:admin")
    admin = client_with(*every)
    applications = {
        name: sent(admin, "POST", "application", name=name).json()["application"]["id"]
        for name in ("shop", "bank")
    }
    shop = Binding(application_ids=frozenset({uuid.UUID(applications["shop"])}))
    clients = {
        "admin": admin,
        "writer": client_with("state:read", "state:write"),
        "shop": client_with(*every, **shop.columns()),
        "cluster of one": client_with(*every, bound_cluster_id=uuid.uuid4()),
    }
    machine = type("Machine", (Model,), {"clients": clients, "applications": applications})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100, stateful_step_count=30, deadline=None,
            suppress_health_check=list(HealthCheck), database=None,
            phases=[Phase.generate],  # to shrink a failure takes minutes
        ),
    )  # fmt: skip
