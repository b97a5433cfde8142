"""PUT and GET /api/v1/states/{id}/versions/{number}/facts."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from apikeys.actors import Actor
from apikeys.models import AccessToken, AuditEvent, Issuer, TrustPolicy, User
from apikeys.tokens import TokenKind
from states.errors import InvalidFile
from states.keeping import pruning
from states.models import StateVersion, UsedVersion, VersionFacts
from states.pipeline import lock_file, module_manifest
from states.pipeline.module_manifest import without_credentials
from tests.conftest import error_reason
from tests.states.conftest import Backend, document
from tests.support.people import person, text_of

#: Written by terraform init 1.11.4, but for the number of hashes.
LOCK_FILE: Final = """\
# This file is maintained automatically by "terraform init".
# Manual edits may be lost in future updates.

provider "registry.terraform.io/hashicorp/random" {
  version = "3.6.3"
  hashes = [
    "h1:zG9uFP8l9u+yGZZvi5Te7PV62j50azpgwPunq2vTm1E=",
    "zh:04ceb65210251339f07cd4611885d242cd4d0c7306e86dda9785396807c00451",
  ]
}

provider "registry.terraform.io/hashicorp/aws" {
  version     = "5.31.0"
  constraints = ">= 4.0.0, ~> 5.0"
}
"""
PROVIDERS: Final = [
    {"source": "registry.terraform.io/hashicorp/aws", "version": "5.31.0",
     "constraints": ">= 4.0.0, ~> 5.0"},
    {"source": "registry.terraform.io/hashicorp/random", "version": "3.6.3", "constraints": ""},
]  # fmt: skip
VPC: Final = "registry.terraform.io/terraform-aws-modules/vpc/aws"
MODULES_FILE: Final = {
    "Modules": [
        {"Key": "", "Source": "", "Dir": "."},
        {"Key": "vpc", "Source": VPC, "Version": "5.1.0", "Dir": ".terraform/modules/vpc"},
        {"Key": "own", "Source": "./own", "Dir": "own"},
        {"Key": "git", "Source": "git::https://u:secret@git.example/x.git?ref=v1&sshkey=secret"},
    ]
}
MODULES: Final = [
    {"key": "git", "source": "git::https://git.example/x.git?ref=v1", "version": ""},
    {"key": "own", "source": "./own", "version": ""},
    {"key": "vpc", "source": VPC, "version": "5.1.0"},
]
FACTS: Final[dict[str, Any]] = {
    "commit": "8f2c1d7", "run_url": "https://ci.example/runs/417?x=1",
    "lock_file": LOCK_FILE, "modules_file": MODULES_FILE,
}  # fmt: skip


def put(backend: Backend, facts: Any, number: int = 1) -> Any:
    return backend.client.send("PUT", f"{backend.root}/versions/{number}/facts", facts)


def events() -> list[dict[str, Any]]:
    found = AuditEvent.objects.filter(action="state.facts").order_by("id")
    return list(found.values_list("details", flat=True))


@pytest.fixture
def pushed(backend: Backend) -> Backend:
    assert backend.push(document()).status_code == 200
    return backend


def test_facts_are_stored(pushed: Backend) -> None:
    answer = put(pushed, {"facts": FACTS})

    facts = answer.json()["facts"]
    assert answer.status_code == 200
    assert facts == pushed.look("/versions/1/facts").json()["facts"]
    assert facts.pop("recorded_at")
    assert facts.pop("token_id").startswith("tok-")
    assert facts == {
        "version_number": 1, "commit": "8f2c1d7", "run_url": "https://ci.example/runs/417?x=1",
        "repository": "", "run": "", "providers": PROVIDERS, "modules": MODULES,
        "recorded_by": "operator",
    }  # fmt: skip
    assert events() == [
        {"version": 1, "commit": "8f2c1d7", "repository": "", "run": "",
         "run_url": "https://ci.example/runs/417?x=1", "providers": 2, "modules": 3,
         "replaced": False},
    ]  # fmt: skip
    assert "secret" not in repr([*VersionFacts.objects.values(), *AuditEvent.objects.values()])


@pytest.mark.both
def test_ref_of_a_source_is_stored_as_written(pushed: Backend) -> None:
    """A decoded NUL cannot be stored."""
    for ref in ("%00", "a%2Fb", "v1"):
        source = f"git::https://git.example/x.git?ref={ref}"
        module = {"Key": "git", "Source": f"{source}&sshkey=secret", "Version": "1.0.0"}
        answer = put(pushed, {"modules_file": {"Modules": [module]}})
        assert answer.status_code == 200, answer.content
        assert [one["source"] for one in answer.json()["facts"]["modules"]] == [source]


def test_identical_facts_are_a_no_op(pushed: Backend) -> None:
    first = put(pushed, {"facts": FACTS}).json()
    again = put(pushed, {**FACTS, "modules_file": json.dumps(MODULES_FILE)})  # as text, unwrapped

    assert (again.status_code, again.json(), len(events())) == (200, first, 1)

    other = put(pushed, {"commit": "0000000", "lock_file": "", "modules_file": ""})
    assert (other.status_code, other.json()["facts"]["providers"]) == (200, [])
    assert [event["replaced"] for event in events()] == [False, True]


def test_facts_belong_to_a_single_version(pushed: Backend) -> None:
    put(pushed, FACTS)
    pushed.push(document(2))

    answer = pushed.look("/versions/2/facts")
    assert (answer.status_code, error_reason(answer)) == (404, "FACTS_NOT_FOUND")
    restored = pushed.call("/versions/1:restore").json()["version"]["number"]
    assert pushed.look(f"/versions/{restored}/facts").status_code == 404
    for number in ("9", "x"):
        answer = pushed.look(f"/versions/{number}/facts")
        assert (answer.status_code, error_reason(answer)) == (404, "VERSION_NOT_FOUND")


def test_they_go_with_their_version(pushed: Backend, settings: Any) -> None:
    put(pushed, FACTS)
    pushed.push(document(2))
    put(pushed, FACTS, 2)
    StateVersion.objects.update(created_at="2020-01-01T00:00:00Z")
    settings.STATE_VERSIONS_KEPT = 1

    assert sum(done.versions for done in pruning.prune(actor=Actor(name="test"))) == 1

    assert list(VersionFacts.objects.values_list("version__number", flat=True)) == [2]


def test_facts_of_a_version_that_is_removed_meanwhile_are_refused(
    pushed: Backend, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STATE_VERSIONS_KEPT, settings.STATE_VERSIONS_DAYS = 1, 0
    pushed.push(document(2))

    def pruned(text: str) -> list[lock_file.Provider]:
        list(pruning.prune(actor=Actor(name="test")))
        return parse(text)

    parse = lock_file.parse
    monkeypatch.setattr(lock_file, "parse", pruned)
    answer = put(pushed, FACTS)

    assert (answer.status_code, error_reason(answer)) == (404, "VERSION_NOT_FOUND")
    assert not VersionFacts.objects.exists()
    assert not UsedVersion.objects.exists()
    assert events() == []


def test_facts_are_compared_only_with_versions_of_their_state(pushed: Backend) -> None:
    """Citus would otherwise read all versions on all workers."""
    with CaptureQueriesContext(connection) as queries:
        put(pushed, FACTS)

    joins = [q["sql"] for q in queries if 'JOIN "states_stateversion"' in q["sql"]]
    assert joins
    assert all('"states_stateversion"."state_id" = ' in sql for sql in joins)


@pytest.mark.both
@pytest.mark.parametrize(
    ("facts", "reason", "message"),
    [
        ({"lock_file": LOCK_FILE.replace('"3.6.3"', "3.6.3")}, "INVALID_FILE",
         ".terraform.lock.hcl, line 5: "),
        ({"lock_file": "{"}, "INVALID_FILE", ".terraform.lock.hcl, line 1: "),
        ({"modules_file": '{"Modules":\n[}'}, "INVALID_FILE", "modules.json, line 2: "),
        ({"modules_file": {"Modules": [{"Key": 1}]}}, "INVALID_FILE",
         "modules.json: Modules[0].Key is not a string"),
        ({"modules_file": {"modules": []}}, "INVALID_FILE", "modules.json: expected an object"),
        ({"modules_file": {"Modules": [{"Key": "a", "Version": "x"}]}}, "INVALID_FILE",
         "Modules[0].Version is not a version"),
        ({"modules_file": "[" * 100_000}, "INVALID_FILE", "modules.json"),
        ({"modules_file": 7}, "INVALID_FIELDS", ""),
        ({"lock_file": 7}, "INVALID_FIELDS", ""),
        ({"commit": 7}, "INVALID_FIELDS", ""),
        ({"commit": "x" * 201}, "INVALID_FIELDS", ""),
        ({"run_url": "javascript:alert(1)"}, "INVALID_FIELDS", ""),
        ({"run_url": "https://x.example/a b"}, "INVALID_FIELDS", ""),
        ({"lockfile": ""}, "INVALID_FIELDS", ""),
        ([], "INVALID_FIELDS", ""),
    ],
)  # fmt: skip
def test_invalid_facts_are_rejected(facts: Any, reason: str, message: str, pushed: Backend) -> None:
    answer = put(pushed, facts)

    assert (answer.status_code, error_reason(answer)) == (400, reason)
    assert message in answer.json()["error"]["message"]
    assert not VersionFacts.objects.exists()


def test_scopes_are_required(pushed: Backend, client_with: Any) -> None:
    reader = pushed.as_client(client_with("state:read"))

    answer = put(reader, FACTS)

    assert (answer.status_code, error_reason(answer)) == (403, "SCOPE_INSUFFICIENT")
    put(pushed, FACTS)
    assert reader.look("/versions/1/facts").status_code == 200


@pytest.mark.parametrize(
    ("kind", "issuer", "url"),
    [
        ("GITHUB", "https://token.actions.githubusercontent.com",
         "https://github.com/acme/infra/actions/runs/417"),
        ("GITHUB", "https://git.example/_services/token", ""),
        ("GITLAB", "https://gitlab.example", "https://gitlab.example/acme/infra/-/pipelines/417"),
        ("BUILDKITE", "https://agent.buildkite.com", ""),
    ],
)  # fmt: skip
def test_a_keyless_token_fills_in_its_run(
    kind: str, issuer: str, url: str, *, pushed: Backend, client_with: Any, operator: User
) -> None:
    made = Issuer.objects.create(kind=kind, url=issuer, audience="x")
    policy = TrustPolicy.objects.create(
        issuer=made, owner=operator, name="ci", conditions=[{"claim": "a", "equals": "b"}],
        scopes=["state:write"],
    )  # fmt: skip
    run = {"jti": "j", "sub": "s", "repository": "acme/infra", "commit": "abc", "run": "417"}
    pipeline = pushed.as_client(
        client_with(
            "state:write", kind=TokenKind.SERVICE, trust_policy=policy, run=run,
            expires_at="2099-01-01T00:00:00Z",
        )
    )  # fmt: skip

    facts = put(pipeline, {}).json()["facts"]

    assert facts["repository"] == "acme/infra"
    assert (facts["commit"], facts["run"], facts["run_url"]) == ("abc", "417", url)
    AccessToken.objects.filter(trust_policy=policy).update(run={"commit": "c" * 5_000})
    facts = put(pipeline, {}).json()["facts"]
    assert (facts["repository"], facts["commit"], facts["run_url"]) == ("", "c" * 200, "")
    AccessToken.objects.filter(trust_policy=policy).update(run=run)
    own = put(pipeline, {"commit": "mine", "run_url": "https://x.example/1"}).json()["facts"]
    assert (own["commit"], own["run"], own["run_url"]) == ("mine", "417", "https://x.example/1")


def test_page_of_a_version_shows_its_facts(pushed: Backend) -> None:
    page = f"/admin/states/state/{pushed.record.pk}/versions/1/contents/"
    assert "Pipeline facts" not in text_of(person("viewer").get(page))
    put(pushed, FACTS)

    answer = person("viewer").get(page)

    assert "Commit 8f2c1d7 . Run . Reported just now by operator." in text_of(answer)
    assert "registry.terraform.io/hashicorp/aws 5.31.0 >= 4.0.0, ~> 5.0" in text_of(answer)
    assert f"vpc {VPC} 5.1.0" in text_of(answer)
    assert 'href="https://ci.example/runs/417?x=1"' in answer.content.decode()


BLOCK: Final = 'provider "a.b/c/d" {\n  version = "1.0.0"\n}\n'


@pytest.mark.parametrize(
    "text",
    ["", "# x", "// x\r\n\n", BLOCK.replace("\n", "\r\n"), BLOCK.strip(), f"{BLOCK}# end",
     BLOCK.replace("}", "hashes = []\n}"), BLOCK.replace("}", 'hashes = [\n"a",\n"b"]\n}')],
)  # fmt: skip
def test_lock_files_are_parsed(text: str) -> None:
    found = lock_file.parse(text)

    assert [tuple(provider) for provider in found] in ([], [("a.b/c/d", "1.0.0", "")])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("provider", 1), ("\n\nmodule", 3), (BLOCK + BLOCK, 4), (BLOCK[:-2], 3),
        (BLOCK.replace("1.0.0", "1.0.0.0"), 2), (BLOCK.replace("1.0.0", "${x}"), 2),
        (BLOCK.replace("version", "versions"), 2), (BLOCK.replace("}", "  version = 1\n}"), 3),
        (BLOCK.replace("a.b/c/d", "c/d"), 1), (BLOCK.replace("{\n", "{"), 1),
        ('provider "a.b/c/d" {\n}', 2), (BLOCK.replace("}", "hashes = [1]\n}"), 3),
        (BLOCK.replace("}", 'hashes = ["a" "b"]\n}'), 3), (BLOCK.replace("}", "hashes = [\n\n"), 6),
        (BLOCK.replace("}", f'constraints = "{"x" * 1_001}"\n}}'), 3), ("\0", 1),
    ],
)  # fmt: skip
def test_bad_lock_files(text: str, line: int) -> None:
    with pytest.raises(InvalidFile) as refused:
        lock_file.parse(text)

    assert refused.value.metadata == {"file": ".terraform.lock.hcl", "line": str(line)}


def fault_of(parse: Any, value: Any) -> dict[str, str]:
    try:
        parse(value)
    except InvalidFile as refused:
        return refused.metadata
    return {}


@given(st.text(alphabet=st.sampled_from(list('provider "a.b/c/d" {}[]=,#\n1$\\é'))))
def test_any_text_is_a_lock_file_or_refused(text: str) -> None:
    for written in (text, BLOCK + text, BLOCK.replace("}", text)):
        line = fault_of(lock_file.parse, written).get("line", "1")
        assert 1 <= int(line) <= written.count("\n") + 1


NAMES: Final = st.sampled_from(["Modules", "Key", "Source", "Version"]) | st.text()
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
)


@pytest.mark.slow
@given(JSON)
def test_any_json_is_a_manifest_or_refused(value: Any) -> None:
    for manifest in (value, {"Modules": value}, {"Modules": [value]}, json.dumps(value)):
        fault = fault_of(module_manifest.parse, manifest)
        assert fault.get("file", "modules.json") == "modules.json"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("./own", "./own"), (VPC, VPC), ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ("git::ssh://git@host/a//b?ref=v1", "git::ssh://host/a//b?ref=v1"),
        ("https://a:b@c:d@host/x.zip?token=1", "https://host/x.zip"),
        ("s3::https://s3.example/b/k.zip?aws_access_key_secret=1&ref=2",
         "s3::https://s3.example/b/k.zip?ref=2"),
    ],
)  # fmt: skip
def test_sources_are_shown_without_credentials(source: str, shown: str) -> None:
    assert without_credentials(source) == shown
