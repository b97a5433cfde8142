"""The index has no value that a state marks as sensitive, in any column, nor its digest."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from states.document import sealing
from states.document.contents import LoadedDocument
from states.resources.digests import digest
from states.resources.extraction import Found, find_contents
from tests.states.generated import generated
from tests.states.samples import instance, path, resource, state

PUBLIC = st.text("abc-:/1", min_size=1, max_size=12)
#: Secrets use characters that appear nowhere else, so that they are recognised.
SECRET = generated("SECRTABDFGHJKLM0123456789")
NAMES = ("id", "arn", "self_link", "name")


@st.composite
def values(draw: Any, secrets: list[str]) -> Any:
    """A public value, a secret, or a text with a secret in it."""
    if draw(st.booleans()):
        return draw(PUBLIC)
    return draw(st.sampled_from(["", "arn:", "x/"])) + draw(st.sampled_from(secrets))


@st.composite
def documents(draw: Any) -> tuple[bytes, list[str]]:
    """A state and its secrets, each of which is marked somewhere."""
    secrets = draw(st.lists(SECRET, min_size=1, max_size=4, unique=True))
    value = values(secrets)
    things = []
    for number in range(draw(st.integers(1, 5))):
        attributes: dict[str, Any] = {name: draw(value) for name in NAMES if draw(st.booleans())}
        if draw(st.booleans()):
            attributes["metadata"] = [{name: draw(value) for name in ("uid", "namespace", "name")}]
        identity = {name: draw(value) for name in ("account", "id")}
        things.append(resource(f"n{number}", instance(attributes, identity=identity)))
    kept = instance({"all": secrets}, path("all"))
    outputs: dict[str, Any] = {}
    if draw(st.booleans()):
        things.insert(draw(st.integers(0, len(things))), resource("marked", kept))
    else:
        outputs = {"all": {"value": secrets, "type": "dynamic", "sensitive": True}}
    return state(*things, outputs=outputs), secrets


def columns(found: Found) -> str:
    return json.dumps([str(column) for column in found])


@given(documents())
def test_generated_states_hide_secrets(case: tuple[bytes, list[str]]) -> None:
    body, secrets = case

    found = find_contents(LoadedDocument(sealing.compress(body))).resources

    stored = {value for one in found for value in one.digests}
    for one in found:
        assert not any(secret in columns(one) for secret in secrets)
    for resource_ in json.loads(body)["resources"]:
        for each in resource_["instances"]:
            metadata = each["attributes"].get("metadata", [{}])[0]
            texts = [each["attributes"].get(name) for name in NAMES] + list(metadata.values())
            texts += [f"{metadata['namespace']}/{metadata['name']}"] if metadata else []
            for text in [*filter(None, texts), each.get("identity") or "x"]:
                written = json.dumps(text)
                if any(secret in written for secret in secrets):
                    assert digest(text) not in stored, text
    for secret in secrets:
        assert digest(secret) not in stored


def test_public_values_are_found() -> None:
    """Else the test above would prove nothing."""
    body = state(
        resource("a", instance({"id": "i-1"}, identity={"id": "i-1"})),
        resource("b", instance({"all": "SECRETS"}, path("all"))),
    )

    (one, _other) = find_contents(LoadedDocument(sealing.compress(body))).resources

    assert one.digests == {digest("i-1"), digest({"id": "i-1"})}
