"""Addresses of names: concurrent first uses, and all operations of Terraform."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.e2e.backend import document
from tests.e2e.conftest import MakeTerraform
from tests.e2e.database import problems
from tests.e2e.named import Named, new_name
from tests.e2e.together import Call, at_once, in_threads
from tests.support.server import LiveServer

pytestmark = pytest.mark.both

MANY = 20
ONE = """
resource "terraform_data" "a" { input = "first" }
output "a" { value = terraform_data.a.output }
"""


def listed(live: LiveServer, token: str, kind: str, slug: str) -> list[Any]:
    query = f"?filter=field[%27slug%27]=%27{slug}%27"
    answer = live.request("GET", f"/api/v1/{kind}s{query}", token=token)
    found: list[Any] = answer.json()[f"{kind}s"]
    return found


@pytest.mark.parametrize("verb", ["POST", "LOCK"])
@pytest.mark.parametrize("with_application", [False, True], ids=["without", "with-application"])
def test_simultaneous_first_pushes(
    live: LiveServer, token: str, verb: str, with_application: bool
) -> None:
    """A single application, component, environment and state result."""
    for _ in range(3):
        names = [new_name(kind) for kind in ("application", "component", "environment")]
        named = Named(live, token, *names[0 if with_application else 1 :])
        lock = {"ID": str(uuid.uuid4())}
        body = document() if verb == "POST" else json.dumps(lock).encode()

        answers = at_once(named, [Call(verb, body)] * MANY)

        assert {answer.status for answer in answers} == {200}
        assert problems(named.by_ids()) == []
        kinds = ("application", "component", "environment")
        found = [len(listed(live, token, k, n)) for k, n in zip(kinds, names, strict=True)]
        assert found == [int(with_application), 1, 1]


def test_locks_by_names_and_by_ids_at_the_same_moment(live: LiveServer, token: str) -> None:
    named = Named(live, token)
    assert named.push(document()).status == 200
    backends = (named, named.by_ids())
    ids = [str(uuid.uuid4()) for _ in range(MANY)]
    jobs: list[Callable[[], Any]] = [
        partial(backends[number % 2].lock, lock_id) for number, lock_id in enumerate(ids)
    ]

    answers = in_threads(jobs)

    assert Counter(a.status for a in answers) == {200: 1, 423: MANY - 1}
    (winner,) = (i for i, a in zip(ids, answers, strict=True) if a.status == 200)
    assert {a.json()["ID"] for a in answers} == {winner}
    assert backends[1].unlock(winner).status == 200


def test_percent_encoded_slash_is_rejected(live: LiveServer, token: str) -> None:
    for path in ("a%2Fb/prod", "a%2fb/prod"):
        answer = live.request("GET", f"/api/v1/state/at/{path}", token=token)
        assert (answer.status, b"Not a valid address" in answer.body) == (400, True)


@pytest.mark.terraform
@pytest.mark.parametrize("parts", [2, 3], ids=["without", "with-application"])
def test_terraform_applies(
    terraform: MakeTerraform, live: LiveServer, token: str, reader_token: str, parts: int
) -> None:
    names = [new_name(kind) for kind in ("application", "component", "environment")]
    named = Named(live, token, *names[-parts:])
    tf = terraform(ONE, address=named.address)
    assert named.get().status == 404  # init stores nothing
    assert "Resources: 1 added" in tf.apply().out
    tf.run("plan", "-detailed-exitcode", code=0)
    assert named.get().body == named.by_ids().get().body == tf.pulled()
    assert named.holder() is None

    lock_id = str(uuid.uuid4())
    assert named.by_ids().lock(lock_id, Who="bob@desk").status == 200
    assert f"already locked: ID={lock_id}" in tf.apply(code=1).out
    tf.run("force-unlock", "-force", lock_id)
    assert named.holder() is None

    consumer = terraform(
        f"""
        data "terraform_remote_state" "other" {{
          backend = "http"
          config  = {{ address = "{named.address}", password = "{reader_token}" }}
        }}
        output "copied" {{ value = data.terraform_remote_state.other.outputs.a }}
        """,
        address=Named(live, token).address,
    )
    consumer.apply()
    assert consumer.raw("output", "-raw", "copied") == b"first"
    # The same state at the address of its ids, without another plan.
    terraform(ONE, address=named.by_ids().address).run("plan", "-detailed-exitcode", code=0)


@pytest.mark.terraform
def test_outputs_are_read_without_the_state(
    terraform: MakeTerraform, live: LiveServer, token: str
) -> None:
    named = Named(live, token)
    terraform(
        """
        output "a" { value = "first" }
        output "password" {
          value     = "correct-horse"
          sensitive = true
        }
        """,
        address=named.address,
    ).apply()
    (outputs,) = live.tokens("state:outputs")
    (state,) = live.request(
        "GET", f"/api/v1/states?filter=field[%27component%27]=%27{named.names[0]}%27", token=token
    ).json()["states"]
    by_id = named.address.replace(named.path, f"/api/v1/states/{state['id']}")
    for address in (named.address, named.by_ids().address, by_id):

        def reading(output: str, address: str = address) -> str:
            return f"""
            data "terraform_remote_state" "other" {{
              backend = "http"
              config  = {{ address = "{address}/outputs.tfstate", password = "{outputs}" }}
            }}
            output "copied" {{ value = data.terraform_remote_state.other.outputs.{output} }}
            """

        consumer = terraform(reading("a"), address=Named(live, token).address)
        consumer.apply()
        assert consumer.raw("output", "-raw", "copied") == b"first"
        refused = terraform(reading("password"), address=Named(live, token).address).apply(code=1)
        assert 'does not have an attribute named "password"' in refused.out


@pytest.mark.terraform
def test_consumer_reads_outputs_beside_a_sensitive_object(
    terraform: MakeTerraform, live: LiveServer, token: str
) -> None:
    """A sensitive object hides outputs that contain its password, not its region or port."""
    named = Named(live, token)
    producer = """
        output "vpc_arn" { value = "arn:aws:ec2:eu-west-1:111122223333:vpc/vpc-0shop" }
        output "db_port" { value = 5432 }
        output "url" { value = nonsensitive("postgres://app:${local.password}@db.shop.example") }
        locals { password = sensitive("tr0ub4dor-and-three") }
    """
    terraform(producer, address=named.address).apply()
    (outputs,) = live.tokens("state:outputs")

    def reading(output: str) -> str:
        return f"""
        data "terraform_remote_state" "other" {{
          backend = "http"
          config  = {{ address = "{named.address}/outputs.tfstate", password = "{outputs}" }}
        }}
        output "copied" {{ value = data.terraform_remote_state.other.outputs.{output} }}
        """

    consumers = {name: terraform(reading(name), address=Named(live, token).address)
                 for name in ("vpc_arn", "db_port", "url")}  # fmt: skip
    for consumer in consumers.values():
        consumer.apply()

    terraform(
        producer
        + """
        output "connection" {
          value = { host = "db.shop.example", port = 5432, region = "eu-west-1", user = "app",
                    password = local.password }
          sensitive = true
        }
        """,
        address=named.address,
    ).apply()

    for name in ("vpc_arn", "db_port"):
        consumers[name].run("plan", "-detailed-exitcode", code=0)
    refused = consumers["url"].apply(code=1)
    assert 'does not have an attribute named "url"' in refused.out


@pytest.mark.terraform
def test_matrix_of_components_and_environments_applies(
    terraform: MakeTerraform, live: LiveServer, token: str
) -> None:
    """The same configuration, with an address from the environment, as with Terragrunt and
    pipelines.
    """
    component, environments = new_name("network"), [new_name("prod"), new_name("staging")]
    for environment in environments:
        tf = terraform(ONE, init=False)
        (tf.directory / "backend.tf").write_text('terraform {\n  backend "http" {}\n}\n')
        address = Named(live, token, component, environment).address
        tf.environment |= {
            f"TF_HTTP_{name}": address for name in ("ADDRESS", "LOCK_ADDRESS", "UNLOCK_ADDRESS")
        }
        tf.run("init")
        tf.apply()
    query = f"?filter=field[%27component%27]=%27{component}%27"
    states = live.request("GET", f"/api/v1/states{query}", token=token).json()["states"]
    assert {state["environment_slug"] for state in states} == set(environments)
    assert len({state["component_id"] for state in states}) == 1
