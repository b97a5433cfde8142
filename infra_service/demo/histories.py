"""Demo states with a history of several weeks.

The same actions as for requests create the history at past times, so that versions, locks and the
audit log agree.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from apikeys.models import AccessToken
from infra_service.demo.catalogue import Catalogue, place_of, places_read
from infra_service.demo.seeded_random import SeededRandom
from infra_service.demo.stacks import Stack
from infra_service.demo.users import COMMAND
from states.actions import history, locks
from states.actions.facts import record_facts
from states.actions.push import push
from states.actions.registration import find_or_register
from states.document.uploads import Upload
from states.lockinfo import LockInfo
from states.models import StateVersion
from states.pipeline.lock_file import Provider
from states.pipeline.module_manifest import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from apikeys.actors import Actor
    from states.targets import StateTarget

#: The maximum number of states. The creation of each takes some hundredths of a second.
MOST: Final = 120
_HISTORY: Final = 4
_SECOND, _MINUTE = dt.timedelta(seconds=1), dt.timedelta(minutes=1)
_HOUR, _DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
_WEEKS: Final = 21
_WORKING_HOURS: Final = range(7, 18)
_SATURDAY: Final = 5
_AT_HOME, _TODAY = 0.8, 0.2
_APPLY: Final = dt.timedelta(seconds=40)
#: The number of states among which each situation occurs once.
_ROUND: Final = 40
_FRESH_LOCK, _STALE_LOCK, _BROKEN_LOCK, _RESTORED, _DELETED = 3, 5, 11, 17, 23
_STALE: Final = (26 * _HOUR, 5 * _HOUR, 3 * _DAY, 9 * _DAY)


def load_histories(
    total: int, writers: Sequence[Actor], now: dt.datetime, progress: Callable[[int], None]
) -> Counter[str]:
    """Create states with their history, and skip existing states.

    Return the number of new rows per kind.
    """
    catalogue, created = Catalogue(now), Counter[str]()
    used: dict[str, dt.datetime] = {}
    for number in range(total):
        if catalogue.target_at(place_of(number)).find(COMMAND) is None:
            one = _History(number, catalogue, writers, now)
            with transaction.atomic():
                created.update(one.play())
            used.update({t: max(at, used.get(t, at)) for t, at in one.used.items()})
        progress(number + 1)
    for token_id, moment in used.items():
        AccessToken.objects.touch(token_id, moment, "192.0.2.17")
    return created + catalogue.created


class _History:
    """The history of a state."""

    def __init__(
        self, number: int, catalogue: Catalogue, writers: Sequence[Actor], now: dt.datetime
    ) -> None:
        self._rng, place = SeededRandom(_HISTORY, number), place_of(number)
        self._writers, self._now = writers, now
        self._target = catalogue.target_at(place)
        reads = {one.part: _address_of(catalogue.target_at(one)) for one in places_read(number)}
        self._stack = Stack(place.part, place.environment, self._rng, reads)
        self._part = place.part
        turn, self._situation = divmod(number, _ROUND)
        self._stale_for = _STALE[turn % len(_STALE)]
        self._created = Counter(states=1)
        #: The last use of each token, by its id.
        self.used: dict[str, dt.datetime] = {}

    def play(self) -> Counter[str]:
        """Create the history in chronological order, and return the number of new rows per kind."""
        moments = self._moments(self._now - self._quiet_for())
        registered = _at(self._writer(), moments[0] - _SECOND)
        state = find_or_register(target=self._target, actor=registered)
        for moment in moments[:-1]:
            self._apply(moment)
            self._stack.change()
        version = self._apply(moments[-1])
        self._end(state.pk, moments[-1] + 10 * _MINUTE, version)
        return self._created

    def _quiet_for(self) -> dt.timedelta:
        """Return the minimum time since the last apply."""
        quiet = {_STALE_LOCK: self._stale_for, _BROKEN_LOCK: 3 * _DAY, _DELETED: 2 * _DAY}
        return quiet.get(self._situation, _HOUR * self._rng.random()) + 20 * _MINUTE

    def _moments(self, end: dt.datetime) -> list[dt.datetime]:
        """Return the times of applies: rare at first, then frequent and mostly in working hours."""
        rng = self._rng
        moments = [end - (_WEEKS + rng.uniform(5, 60)) * _DAY]
        if rng.random() < _TODAY:
            moments.append(end)
        for _ in range(rng.randrange(2, 9)):
            moment = end - rng.uniform(1, _WEEKS) * _DAY
            moment = moment.replace(hour=rng.choice(_WORKING_HOURS))
            if moment.weekday() >= _SATURDAY and rng.random() < _AT_HOME:
                moment -= 2 * _DAY
            moments.append(moment)
        moments.sort()
        later = itertools.pairwise(moments)
        return [moments[0], *(b for a, b in later if a + 30 * _MINUTE < b <= end)]

    def _apply(self, moment: dt.datetime) -> int:
        """Lock, push and unlock the state, and return the number of the version."""
        writer = self._writer()
        lock = self._lock(writer, moment)
        done = _at(writer, moment + _APPLY)
        upload = Upload.of(self._stack.document())
        state = push(target=self._target, upload=upload, lock_id=lock.uuid, force=False, actor=done)
        # Events of the same millisecond have no order.
        released = _at(writer, moment + _APPLY + _SECOND)
        locks.unlock(target=self._target, lock_id=lock.uuid, actor=released)
        if _is_pipeline(writer):
            self._record_facts(state.pk, _at(writer, moment + _APPLY + 2 * _SECOND))
        self.used[writer.token_id] = max(moment, self.used.get(writer.token_id, moment))
        self._created["versions"] += 1
        return state.version_number + 1

    def _record_facts(self, state_id: uuid.UUID, actor: Actor) -> None:
        """Record a pipeline's facts about the version that it has just pushed."""
        run = self._rng.randrange(1000, 9999)
        aws = f"5.{self._rng.choice((31, 82, 100))}.0"
        module = f"registry.terraform.io/terraform-aws-modules/{self._part}/aws"
        record_facts(
            version=StateVersion.objects.filter(state_id=state_id).latest("number"),
            actor=actor,
            providers=[
                Provider("registry.terraform.io/hashicorp/aws", aws, "~> 5.31"),
                Provider("registry.terraform.io/hashicorp/random", "3.6.3", ""),
            ],
            modules=[Module(self._part, module, self._rng.choice(("4.2.0", "5.1.1")))],
            commit=f"{self._rng.getrandbits(160):040x}",
            repository=f"acme/{self._part}",
            run=str(run),
            run_url=f"https://ci.example.com/runs/{run}",
        )

    def _lock(self, writer: Actor, moment: dt.datetime) -> LockInfo:
        host = f"runner-{self._rng.randrange(1, 13):02}" if _is_pipeline(writer) else "laptop"
        lock = LockInfo(
            ID=str(uuid.uuid4()),
            Operation="OperationTypeApply",
            Who=f"{writer.name.removeprefix('demo-')}@{host}",
            Version="1.11.4",
            Created=f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}",
        )
        return locks.lock(target=self._target, info=lock, actor=_at(writer, moment))

    def _end(self, state_id: uuid.UUID, moment: dt.datetime, version: int) -> None:
        """Bring the state into its situation, such as a stale lock, after the last apply."""
        now, writer = self._now, self._writer()
        if self._situation == _FRESH_LOCK:
            self._lock(writer, now - self._rng.uniform(1, 9) * _MINUTE)
            self._created["locks"] += 1
        elif self._situation == _STALE_LOCK:
            self._lock(writer, now - self._stale_for)
            self._created["locks"] += 1
        elif self._situation == _BROKEN_LOCK:
            self._lock(writer, now - 3 * _DAY)
            reason = "the runner was shut down in the middle of its apply"
            actor = _at(self._writers[0], now - 3 * _DAY + 47 * _MINUTE)
            locks.force_unlock(target=self._target, reason=reason, actor=actor)
        elif self._situation == _RESTORED:
            history.restore(
                state_id=state_id,
                number=version - 1,
                lock_id=None,
                actor=_at(self._writers[0], moment),
                reason="the last apply removed the wrong resource",
            )
            self._created["versions"] += 1
        elif self._situation == _DELETED:
            history.delete(target=self._target, actor=_at(self._writers[0], now - 2 * _DAY))

    def _writer(self) -> Actor:
        return self._rng.choice(self._writers)


def _address_of(target: StateTarget) -> str:
    """Return a state's URL on a host of this service, so that the URL is recognized as local."""
    names = (host for host in settings.ALLOWED_HOSTS if host[:1] not in {"*", "."})
    return (
        f"https://{next(names, 'infra.example.com')}{reverse('state-backend', kwargs=target.ids)}"
    )


def _is_pipeline(writer: Actor) -> bool:
    return writer.name == "demo-ci"


def _at(writer: Actor, moment: dt.datetime) -> Actor:
    return dataclasses.replace(writer, at=moment, request_id=uuid.uuid4().hex)
