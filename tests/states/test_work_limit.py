"""The number of steps to search a document: every part counts, whatever its structure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from states.document import masking, sensitive_paths
from states.document.encodings import unescaped
from states.document.finding import Finder
from states.document.format4 import Instance
from states.document.marked_places import MARKED, MarkedPlace
from states.document.secret_values import RULE_COST, Secrets
from states.document.work_limit import Effort
from tests.states.samples import path


class Counted(Effort):
    """Has as many steps as anybody wants, and counts those that are taken."""

    def __init__(self) -> None:
        super().__init__(2**30)
        self.steps = 0

    def spend(self, steps: int) -> None:
        self.steps += steps
        super().spend(steps)


def added(*values: Any) -> Callable[[Effort], None]:
    def add(effort: Effort) -> None:
        secrets = Secrets(effort)
        for value in values:
            secrets.add(value, MarkedPlace())

    return add


def masked(value: Any) -> Callable[[Effort], None]:
    def mask(effort: Effort) -> None:
        masking.masked(Secrets(effort), (value, {}))

    return mask


def hidden(*texts: str) -> Callable[[Effort], None]:
    """Search texts for a secret that hides only equal texts."""

    def hide(effort: Effort) -> None:
        secrets = Secrets(effort)
        secrets.add("word", MarkedPlace())
        secrets.hides(list(texts))

    return hide


def marked(*paths: Any) -> Callable[[Effort], None]:
    raw = msgspec.Raw(json.dumps(paths).encode())

    def read(effort: Effort) -> None:
        sensitive_paths.paths(Instance(sensitive_attributes=raw), effort)

    return read


def searched(*texts: str, secrets: Sequence[str] = ("secret-secret",)) -> Callable[[Effort], None]:
    """Search texts for secrets."""

    def search(effort: Effort) -> None:
        finder = Finder(effort)
        for secret in secrets:
            finder.add(secret, MARKED)
        finder.containing(texts)

    return search


def read(text: bytes, times: int = 1) -> Callable[[Effort], None]:
    """Undo the escapes of a text."""

    def undo(effort: Effort) -> None:
        for _ in range(times):
            unescaped(text, effort)

    return undo


def steps(work: Callable[[Effort], None]) -> int:
    effort = Counted()
    work(effort)
    return effort.steps


@pytest.mark.parametrize(
    ("work", "each"),
    [
        pytest.param(lambda n: added(*[None] * n), 1, id="a secret"),
        pytest.param(lambda n: added(*[{}] * n), 1, id="an empty one"),
        pytest.param(lambda n: added(*[[None]] * n), 2, id="a list with its item"),
        pytest.param(
            lambda n: added(*(f"secret-{i}" for i in range(n))),
            1 + RULE_COST + Finder.COST,
            id="a text",
        ),
        pytest.param(
            lambda n: added([f"{i:03}{'a' * 97}" for i in range(n)]),
            1 + RULE_COST + 100 / 5,
            id="a text of 100 characters in a list",
        ),
        pytest.param(
            lambda n: added([f"{i:04}{'/a' * 2046}" for i in range(n)]),
            1 + RULE_COST + 4096 // 5,
            id="a text of 4096 characters in a list",
        ),
        pytest.param(lambda n: added("\n".join(["line"] * n)), 1, id="a line of a secret"),
        pytest.param(
            lambda n: added("\n".join(f"{i:03}{'a' * 97}" for i in range(n))),
            1 + RULE_COST + 100 / 5,
            id="a new line of 100 characters",
        ),
        pytest.param(
            lambda n: added(*["lines\nof text"] * n), 1, id="the same text, which is known"
        ),
        pytest.param(
            lambda n: added(
                *({"password": f"secret-{i}", "secret": f"secret-{i}"} for i in range(n))
            ),
            3 + 2 * RULE_COST + Finder.COST,
            id="a new text under two kinds of names",
        ),
        pytest.param(
            lambda n: hidden(*[f"={'a' * 99}"] * n),
            0.5 + 100 / 5,
            id="a text that may contain a password",
        ),
        pytest.param(lambda n: added(json.dumps([{}] * n)), 1, id="a value in JSON in a secret"),
        pytest.param(lambda n: masked([1] * n), 1, id="a number"),
        pytest.param(lambda n: masked([Decimal("0.1")] * n), 4, id="a fraction"),
        pytest.param(lambda n: masked([str(i) for i in range(n)]), 1.5, id="a text that is shown"),
        pytest.param(lambda n: masked({str(i): 1 for i in range(n)}), 1.5, id="a key"),
        pytest.param(lambda n: searched(*["a"] * n), 0.6, id="a text that is searched"),
        pytest.param(lambda n: searched("a" * n), 1 / 20, id="a byte that is searched"),
        pytest.param(
            lambda n: searched("cret-sec" * n), 8 / 20 + 1, id="what looks like the secret"
        ),
        pytest.param(lambda n: marked(*[[]] * n), 1, id="a path"),
        pytest.param(lambda n: read(b"%", n), 1, id="a text that may hold escapes"),
        pytest.param(lambda n: read(b"." * 1000 * n), 1, id="its thousand bytes"),
        pytest.param(lambda n: read(b"%41" * n), 0.5, id="an escape of an address"),
        pytest.param(lambda n: read(b"\\u0041" * n), 1, id="an escape of JSON"),
        # With the weight of its JSON.
        pytest.param(lambda n: marked(*[path("a")] * n), 2.38, id="a path of one step"),
    ],
)
def test_each_part_takes_its_steps(
    work: Callable[[int], Callable[[Effort], None]], each: float
) -> None:
    """Parsing the JSON adds about one step per 1,500 bytes."""
    assert (steps(work(300)) - steps(work(200))) / 100 == pytest.approx(each, abs=0.04)


def test_secrets_that_are_alike_cost_each_comparison() -> None:
    """All secrets share a middle part that the text repeats."""
    alike = [f"{number:04}MIDDLEMIDDLE{number:04}" for number in range(100)]

    few, many = (steps(searched("-MIDDLEMIDDLE" * n, secrets=alike)) for n in (1000, 2000))

    assert many - few >= 1000 * len(alike) // 2
