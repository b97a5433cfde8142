"""The references of keys, scopes, errors and commands are complete and exact."""

import itertools
import re
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.urls import get_resolver

from apikeys import tokens
from apikeys.api import filters
from apikeys.api.binding_serializers import BindingSerializer
from apikeys.api.serializers import AccessTokenSerializer, ApiKeySerializer
from apikeys.querysets import AccessTokenStatus, ApiKeyStatus
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind
from filterlang.fields import field_set
from infra_service.lib.commandline.overview import PURPOSES
from tests.docs.test_openapi import OPERATIONS

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("apikeys", "filterlang", "infra_service", "states", "workloads")


def reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text()


def code() -> str:
    return "\n".join(p.read_text() for app in OURS for p in sorted((ROOT / app).rglob("*.py")))


def first_column(text: str, pattern: str) -> list[str]:
    return re.findall(rf"^\| `({pattern})` \|", text, re.MULTILINE)


def test_scopes_match() -> None:
    documented = re.findall(r"^\| `(\w+:\w+)` \| (.+) \|$", reference("scopes"), re.MULTILINE)

    assert documented == [(scope.value, str(scope.label)) for scope in Scope]


def test_token_kinds_match_the_scanner_pattern() -> None:
    text = reference("scopes")

    assert first_column(text, "is._") == [kind.value for kind in TokenKind]
    assert f"```\n{tokens.TOKEN_PATTERN}\n```" in text
    assert first_column(text, r"binding\.\w+") == [
        f"binding.{name}" for name in BindingSerializer().fields
    ]


# Reasons of DRF's own exceptions, of Django's handlers, and of the server before them.
FRAMEWORK = {
    "BAD_REQUEST", "CSRF_FAILED", "EXPECTATION_UNSUPPORTED", "FILE_REFUSED", "HEADERS_TOO_LARGE",
    "HTTPS_REQUIRED", "INTERNAL", "INVALID_JSON", "METHOD_NOT_ALLOWED", "NOT_ACCEPTABLE",
    "NOT_FOUND", "PERMISSION_DENIED", "RATE_LIMITED", "TRANSFER_CODING_UNSUPPORTED",
    "UNSUPPORTED_MEDIA_TYPE", "URI_TOO_LONG",
}  # fmt: skip


def test_documented_error_reasons_match() -> None:
    raised = set(re.findall(r'default_code = "([A-Z_0-9]+)"', code()))
    documented = re.findall(r"^\| \d{3} \| `([A-Z_0-9]+)` \|", reference("errors"), re.MULTILINE)

    assert len(documented) == len(set(documented))
    assert set(documented) == raised | FRAMEWORK


# Reasons of DRF's own fields.
OF_FIELDS = {
    "REQUIRED", "NULL", "BLANK", "EMPTY", "NOT_A_LIST", "INVALID", "MAX_LENGTH", "PAST", "RANGE",
    "MIN_VALUE", "MAX_VALUE",
}  # fmt: skip


def test_documented_field_reasons_match() -> None:
    ours = set(re.findall(r'"reason": "([A-Z_]+)"', code()))
    ours |= set(re.findall(r'InvalidParameter\(.+, "([A-Z_]+)"\)$', code(), re.MULTILINE))
    ours |= set(re.findall(r'reason: str = "([A-Z_]+)"', code()))
    ours |= {"UNKNOWN_FIELD", "UNKNOWN_PATH", "UNKNOWN_SCOPE", "UNKNOWN_VALUE", "BOTH"}
    ours |= {"UNKNOWN_APPLICATION", "UNKNOWN_COMPONENT", "UNKNOWN_ENVIRONMENT"}
    ours |= {"FIXED", "INVISIBLE_CHARACTER", "LIFETIME_EXCEEDED", "OUTPUT_ONLY", "UNKNOWN_ISSUER"}

    assert set(first_column(reference("errors"), "[A-Z_]+")) == ours | OF_FIELDS


def test_documented_commands_match() -> None:
    text = reference("commands")
    commands = {name for name, app in get_commands().items() if app in OURS}

    assert set(re.findall(r"^## (\w+)$", text, re.MULTILINE)) == commands
    purposes = re.findall(r"^\| ([A-Z][^|]+) \| (.*`migrate`.*|\[`.*) \|$", text, re.MULTILINE)
    assert {purpose: re.findall(r"`(\w+)`", cell) for purpose, cell in purposes} == {
        purpose: list(named) for purpose, named in PURPOSES.items()
    }


# Options of all Django commands and of all our commands, documented once.
COMMON = {
    "--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback",
    "--no-color", "--force-color", "--skip-checks", "--json",
}  # fmt: skip


@pytest.mark.parametrize(
    "name", sorted(name for name, app in get_commands().items() if app in OURS)
)
def test_documented_options_match(name: str) -> None:
    sections = dict(
        re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", reference("commands"), re.MULTILINE | re.DOTALL)
    )
    text = sections[name]
    if name == "issue_token":
        text += sections["seed_apikeys"]  # it states that the options are equal
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    options = {
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    documented = set(re.findall(r"`(--[a-z-]+)", text))
    missing_here = {"--file", "--create-users"} if name == "issue_token" else set()

    assert documented - missing_here == options - COMMON


def test_documented_fields_and_statuses_of_keys_and_tokens_match() -> None:
    text = reference("api-keys")
    documented = re.findall(r"^\| `(\w+)` \| (both|key|token) \|", text, re.MULTILINE)

    for serializer, kind in ((ApiKeySerializer, "key"), (AccessTokenSerializer, "token")):
        names = {name for name, where in documented if where in ("both", kind)}
        assert names == set(serializer().fields)
    for status in (*ApiKeyStatus.values, *AccessTokenStatus.values):
        assert f"`{status}`" in text


def test_documented_filterable_fields_match() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", reference("api-keys"), re.MULTILINE
    )

    assert {name: re.findall(r"`(\w+)`", fields) for name, fields in rows} == {
        "api_keys": list(field_set(filters.ApiKeyFilters)),
        "access_tokens": list(field_set(filters.AccessTokenFilters)),
        "audit_events": list(field_set(filters.AuditEventFilters)),
    }


# The lists, by their names on the page on lists.
LISTS = {
    "states": ["list_states"],
    "versions of a state, transitions of a workload": [
        "list_state_versions", "list_workload_transitions",
    ],
    "applications, components, environments, clusters": [
        "list_applications", "list_components", "list_environments", "list_clusters",
    ],
    "resources of all states": ["list_resources", "find_resources"],
    "changes": ["list_changes", "list_state_changes"],
    "workloads of a cluster": ["list_workloads"],
    "API keys, access tokens": ["list_api_keys", "list_access_tokens"],
    "issuers, trust policies": ["list_issuers", "list_trust_policies"],
    "audit events": ["list_audit_events"],
    "webhooks": ["list_webhooks"],
    "deliveries of a webhook": ["list_deliveries"],
}  # fmt: skip


def test_orders_of_lists() -> None:
    _, _, table = reference("requests-and-lists").partition("| list | `order_by`")
    rows = re.findall(r"^\| ([^|`]+) \| (.+) \|$", table.partition("\n\n")[0], re.MULTILINE)
    documented = {title: set(re.findall(r"`([\w.]+)`", cell)) for title, cell in rows}
    taken = {
        name: set(parameter["schema"]["enum"])
        for name, (_, _, operation) in OPERATIONS.items()
        for parameter in operation.get("parameters", [])
        if parameter["name"] == "order_by"
    }

    assert taken == {
        name: {order for column in documented[title] for order in (column, f"{column} desc")}
        for title, names in LISTS.items()
        for name in names
    }


def test_documented_paths_match() -> None:
    documented = set(re.findall(r"^\| `\w+ (/\S+)` \|", reference("api-keys"), re.MULTILINE))

    for path in documented:
        assert get_resolver().resolve(path.replace("{id}", "x")).func
    assert len(documented) == 9


def test_make_targets_exist() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(path.read_text() for path in documents)
    named = set(re.findall(r"(?:`|^\$ )make ([a-z][a-z-]+)", text, re.MULTILINE))
    targets = set(re.findall(r"^([a-z][a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert {"check", "run", "test"} <= named
    assert named - targets == set()


def test_every_clone_checks_out_a_version() -> None:
    found = 0
    for document in (ROOT / "docs").rglob("*.md"):
        lines = document.read_text().splitlines()
        for line, following in itertools.pairwise(lines):
            if cloned := re.fullmatch(r"# git clone \S.* (/opt/\S+/(\S+))", line):
                directory, version = cloned.groups()
                expected = f"# git -C {directory} checkout <tag or commit of {version}>"
                assert following == expected, document
                found += 1
    assert found == 2
