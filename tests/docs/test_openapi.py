"""docs/reference/openapi.yaml matches the service: endpoints, errors, examples and scopes."""

from __future__ import annotations

import functools
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import User
from apikeys.scopes import Scope
from apikeys.tokens import TOKEN_PATTERN
from infra_service.lib.api.errors import reason_of
from infra_service.lib.database.failures import FAILURES
from tests.conftest import error_reason
from tests.support.schemas import violations

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
TEXT = (REFERENCE / "openapi.yaml").read_text()
DOCUMENT: dict[str, Any] = yaml.load(TEXT, yaml.CSafeLoader)
NO_API = {"admin/"}


def resolved(part: dict[str, Any]) -> Any:
    """Follow a reference."""
    if "$ref" not in part:
        return part
    found: Any = DOCUMENT
    for step in part["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return found


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


OPERATIONS = {operation["operationId"]: (p, m, operation) for p, m, operation in operations()}


def doors(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each path of the API, as OpenAPI writes it, with each of its methods."""
    for entry in patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver) and path not in NO_API:
            yield from doors(entry.url_patterns, path)
        # Unknown addresses are described in prose.
        if isinstance(entry, URLPattern) and entry.name != "state-no-address":
            written = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", path).replace(r"\.", ".")
            written = "/" + re.sub(r"[\^$]|/\?$|\\Z", "", written).removesuffix("/?")
            view: Any = entry.callback
            # A viewset has the methods that the path maps to its actions, and OPTIONS.
            has = getattr(view, "actions", None) or dir(view.cls)
            for method in view.cls.http_method_names:
                if method in has or method == "options":
                    yield written, method


def test_every_view_is_described() -> None:
    """LOCK and UNLOCK are described in prose; HEAD is GET, and views do not support OPTIONS."""
    there = {(p, m) for p, m in doors(get_resolver().url_patterns) if m != "head"}
    # The operators' endpoints, in Prometheus' format, the page that links the document, the
    # redirect to the admin, and the assistants' endpoint, which its protocol describes.
    there -= {("/metrics", "get"), ("/", "get"), ("/admin", "get"), ("/mcp", "post")}
    described = {(path, method) for path, method, _ in operations()}
    backends = {path for path, method in there if method == "lock"}

    # By ids, by names, and by names with an application.
    assert len(backends) == 3
    assert there - described == {(path, m) for path in backends for m in ("lock", "unlock")}
    assert described - there == set()
    for operation in (of for path in backends for of in DOCUMENT["paths"][path].values()):
        assert "also accepts Terraform's LOCK and UNLOCK methods" in operation["description"]


def test_descriptions_use_the_vocabulary(subtests: pytest.Subtests) -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        with subtests.test(name):
            assert operation["summary"][0].isupper()
            assert operation["description"]
            assert set(operation["tags"]) <= {tag["name"] for tag in DOCUMENT["tags"]}
            for parameter in operation.get("parameters", []):
                assert parameter["description"]
            assert re.fullmatch("[a-z_]+", name)


def test_no_operation_is_there_twice() -> None:
    assert len(OPERATIONS) == len(list(operations())) == 114


def assert_shown(content: dict[str, Any]) -> None:
    """Each kind of body has a valid example."""
    for media_type, described in content.items():
        schema = {"components": DOCUMENT["components"], "allOf": [described["schema"]]}
        examples = [example["value"] for example in described["examples"].values()]
        assert examples, media_type
        for example in examples:
            assert violations(example, schema) == []


@pytest.mark.slow
def test_examples_match_their_schemas(subtests: pytest.Subtests) -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        with subtests.test(name):
            if "requestBody" in operation:
                assert_shown(operation["requestBody"]["content"])
            done = [answer for code, answer in operation["responses"].items() if code < "300"]
            assert len(done) == 1
            assert_shown(done[0].get("content", {}))


def test_document_contains_no_token_like_text() -> None:
    assert re.findall(TOKEN_PATTERN, TEXT) == []
    assert re.findall(r"\bis[kps]_\w+", TEXT) == []


def test_documented_errors_match(subtests: pytest.Subtests) -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        with subtests.test(name):
            answers = {code: resolved(answer) for code, answer in operation["responses"].items()}
            expected = {"400", "406", "500"}
            if "security" in operation:
                expected |= {"401", "403", "429", "503"}
            if any(parameter["in"] == "path" for parameter in operation.get("parameters", [])):
                expected.add("404")
            if "requestBody" in operation:
                expected.add("413")

            assert expected <= set(answers)
            assert list(answers) == sorted(answers)
            for code, answer in answers.items():
                assert answer["description"]
                required = {n for n, h in answer["headers"].items() if resolved(h).get("required")}
                required -= {"Cache-Control"}
                assert required == {"X-Request-ID"}
                waits = code in ("429", "503") or "IDEMPOTENCY_KEY_IN_USE" in answer["description"]
                assert ("Retry-After" in answer["headers"]) == waits
                assert ("WWW-Authenticate" in answer["headers"]) == (code in ("401", "403"))
                expires = "security" in operation and code != "401"
                assert ("Token-Expires-At" in answer["headers"]) == expires
                if code >= "400":
                    form = "LockInfoError" if code == "423" else "Error"
                    if (name, code) == ("exchange_token", "400"):
                        form = "OAuthErrorOrError"
                    schema = answer["content"]["application/json"]["schema"]
                    assert schema == {"$ref": f"#/components/schemas/{form}"}


def reasons(answer: dict[str, Any]) -> list[str]:
    description = resolved(answer)["description"]
    return re.findall(r"^- `([A-Z_0-9]+)`: .", description, re.MULTILINE)


def test_every_reason_is_documented() -> None:
    """Except for unsupported methods, and for refusals outside of the document."""
    errors = (REFERENCE / "errors.md").read_text()
    documented = set(re.findall(r"^\| (\d{3}) \| `([A-Z_0-9]+)` \|", errors, re.MULTILINE))
    returned = {
        (code, reason)
        for _, _, operation in operations()
        for code, answer in operation["responses"].items()
        for reason in reasons(answer)
    }

    # The document does not describe the remote backend, whose clients know HCP Terraform's API.
    of_remote = {
        ("404", "ROUTE_NOT_FOUND"),
        ("404", "ORGANIZATION_NOT_FOUND"),
        ("404", "WORKSPACE_NOT_FOUND"),
        ("404", "STATE_VERSION_NOT_FOUND"),
        ("409", "WORKSPACE_NOT_LOCKED"),
        ("409", "WORKSPACE_LOCKED_BY_OTHER"),
        ("409", "WORKSPACE_LOCK_REQUIRED"),
        ("409", "WORKSPACE_NOT_EMPTY"),
        ("422", "INVALID_ATTRIBUTE"),
        ("422", "TOO_MANY_TAGS"),
        ("422", "WORKSPACE_EXISTS"),
    }
    assert documented - returned - of_remote == {
        ("400", "FILE_REFUSED"),
        ("403", "CSRF_FAILED"),
        ("403", "ORIGIN_REFUSED"),
        ("403", "PERMISSION_DENIED"),
        ("405", "METHOD_NOT_ALLOWED"),
        ("417", "EXPECTATION_UNSUPPORTED"),
        ("431", "HEADERS_TOO_LARGE"),
        ("501", "TRANSFER_CODING_UNSUPPORTED"),
    }
    assert returned - documented == set()


#: The suffixes of operations by ids, by names, and by names with an application.
WAYS = ("", "_at", "_in_application")
SECRETIVE = {
    *(f"read_state_{what}{way}" for what in ("document", "outputs") for way in WAYS),
    "get_state_outputs_document", "create_api_key", "rotate_api_key", "mint_access_token",
    "exchange_token", "create_webhook", "rotate_webhook_secret",
    "get_state_version_document", "diff_state_versions", "list_state_outputs",
    "list_state_resources",
}  # fmt: skip


def test_secret_responses_are_not_cacheable(subtests: pytest.Subtests) -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        with subtests.test(name):
            done = next(iter(operation["responses"].values()))

            assert ("Cache-Control" in done["headers"]) == (name in SECRETIVE)


PARENTS = {
    "{state_id}": "STATE_NOT_FOUND", "{cluster_id}": "CLUSTER_NOT_FOUND",
    "{workload_id}": "WORKLOAD_NOT_FOUND", "{number}": "VERSION_NOT_FOUND",
    "{webhook_id}": "WEBHOOK_NOT_FOUND", "{delivery_id}": "DELIVERY_NOT_FOUND",
}  # fmt: skip


def test_errors_of_paths_and_queries_are_described(subtests: pytest.Subtests) -> None:
    for name, (path, _, operation) in OPERATIONS.items():
        with subtests.test(name):
            answers = operation["responses"]
            missing = resolved(answers["404"])["description"] if "404" in answers else ""
            for segment, reason in PARENTS.items():
                assert segment not in path or f"`{reason}`" in missing
            if any(one["in"] == "query" for one in operation.get("parameters", [])):
                assert "`INVALID_FIELDS`" in resolved(answers["400"])["description"]


def test_every_failure_of_the_database_is_described(subtests: pytest.Subtests) -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        answer = operation["responses"].get("503")
        with subtests.test(name):
            for failure in FAILURES if answer else ():
                assert f"`{reason_of(failure)}`" in resolved(answer)["description"]


def test_repeated_responses_are_described(subtests: pytest.Subtests) -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        with subtests.test(name):
            done = next(iter(operation["responses"].values()))
            parameters = {one["name"] for one in operation.get("parameters", [])}

            is_idempotent = "Idempotency-Key" in parameters
            assert ("Idempotent-Replayed" in done["headers"]) == is_idempotent


def test_requests_are_closed_and_answers_whole() -> None:
    """A misspelt field is refused; a field without a value is null."""
    schemas = DOCUMENT["components"]["schemas"]
    requests = [schema for name, schema in schemas.items() if name.endswith("Request")]
    requests.remove(schemas["BadRequest"])  # a detail of errors
    answers = [schema for name, schema in schemas.items() if name.endswith(("Answer", "Page"))]

    assert len(requests) > 20
    assert len(answers) > 20
    for schema in requests:
        assert schema["additionalProperties"] is False
    for schema in answers:
        assert schema["required"] == list(schema["properties"])
    assert set(schemas["State"]["properties"]) - set(schemas["State"]["required"]) == {
        "lock",
        "frozen",
    }


class Tokens:
    """Makes a client for each security scheme of the document and each set of scopes."""

    def __init__(self, user: User) -> None:
        self._user = user
        self.clients = {
            "apiKey": functools.cache(lambda *scopes: bearer(self._key(*scopes))),
            "accessToken": functools.cache(lambda *scopes: bearer(self._minted(*scopes))),
        }

    def _key(self, *scopes: str) -> str:
        _, secret = actions.create_api_key(
            user_id=self._user.pk,
            name=f"test {secrets.token_hex(6)}",
            scopes=scopes,
            expires_at=None,
            actor=Actor(name="test"),
        )
        return secret

    def _minted(self, *scopes: str) -> str:
        body = {"access_token": {"name": "test", "scopes": scopes}}
        minter = self.clients["apiKey"](*Scope.values)
        secret: str = minter.post("/v1/access-tokens", body, "application/json").json()["secret"]
        return secret


def bearer(secret: str) -> Client:
    return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})


@pytest.mark.slow
@pytest.mark.django_db
def test_documented_security_matches_the_required_scopes(
    operator: User, subtests: pytest.Subtests
) -> None:
    """The documented scopes and kinds suffice, and each of them is required."""
    clients = Tokens(operator).clients
    for name, (path, method, operation) in OPERATIONS.items():
        if "security" in operation:
            with subtests.test(name):
                assert_asks_for_its_security(path, method, operation, clients)


def assert_asks_for_its_security(
    path: str, method: str, operation: dict[str, Any], clients: Mapping[str, Callable[..., Client]]
) -> None:
    path = re.sub(r"{\w+}", "01941f29-7c00-7d82-b082-532b629f6fbe", path)
    security = {k: v for requirement in operation["security"] for k, v in requirement.items()}
    (scopes,) = {tuple(scopes) for scopes in security.values()}

    def send(client: Client) -> Any:
        return client.generic(method.upper(), path, b"{}", "application/json")

    for scheme, client_with in clients.items():
        answer = send(client_with(*sorted(scopes or ["audit:read"])))
        if scheme in security:
            assert answer.status_code not in (401, 403)
        else:
            assert (answer.status_code, error_reason(answer)) == (403, "TOKEN_KIND_UNSUPPORTED")
    for missing in scopes:
        others = {*scopes, "audit:read", "cluster:read"} - {missing}
        answer = send(clients[next(iter(security))](*sorted(others)))
        assert (answer.status_code, error_reason(answer)) == (403, "SCOPE_INSUFFICIENT")
        assert f'scope="{missing}"' in answer["WWW-Authenticate"]
    assert error_reason(send(Client())) == "CREDENTIALS_MISSING"


def test_where_basic_is_taken() -> None:
    taken = [n for n, (_, _, o) in OPERATIONS.items() if "accessTokenAsPassword" in str(o)]

    verbs = ("read_state_document", "read_state_outputs", "push_state", "delete_state",
             "lock_state", "unlock_state")  # fmt: skip
    everywhere = [f"{verb}{way}" for verb in verbs for way in WAYS]
    assert sorted(taken) == sorted([*everywhere, "get_state_outputs_document"])


def test_filters_list_their_fields() -> None:
    filters = {
        name: parameter
        for name, (_, _, operation) in OPERATIONS.items()
        for parameter in operation.get("parameters", [])
        if parameter["name"] == "filter"
    }

    assert len(filters) == 21
    assert list(filters["list_api_keys"]["x-filter-fields"]) == [
        "id", "status", "unusable_reason", "name", "scopes", "made_by", "created_at",
        "expires_at", "last_used_at", "revoked_at",
    ]  # fmt: skip
    for parameter in filters.values():
        for field in parameter["x-filter-fields"]:
            assert f"| `{field}` |" in parameter["description"]
