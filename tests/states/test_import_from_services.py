"""End-to-end import_states runs from remote services, from their data to stored states."""

import hashlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest

from apikeys.models import AuditEvent
from states.models import State, StateVersion
from tests.e2e import object_store
from tests.states.conftest import document
from tests.states.moving import gitlab, test_pg, tfe
from tests.states.moving.gitlab import GitLabService, Kept
from tests.states.moving.replay import Replay, Reply, Request
from tests.states.moving.test_s3 import Store, variables
from tests.states.moving.tfe import TfeService, Workspace
from tests.states.test_import_states import Run, lineage, stored

pytestmark = pytest.mark.django_db

Documents = list[bytes]


def documents(number: int, count: int = 3) -> Documents:
    """Return the documents of a state from the first serial on."""
    return [document(serial, lineage(number)) for serial in range(1, count + 1)]


def run(source: str, *arguments: Any) -> Run:
    return Run("--from", source, "--history", "all", "--json", *arguments)


def history(names: str) -> list[StateVersion]:
    versions = StateVersion.objects.filter(state=stored(names)).select_related("imported")
    return list(versions.order_by("number"))


def md5s(kept: Documents) -> list[str]:
    return [hashlib.md5(content).hexdigest() for content in kept]


def check_history(names: str, kept: Documents) -> None:
    """Check that each version exists once, in order, under a lock that was released."""
    found = history(names)
    assert [version.md5 for version in found] == md5s(kept)
    assert [version.number for version in found] == list(range(1, len(kept) + 1))
    assert stored(names).lock_id is None


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with object_store.running() as port:
        yield port


class TestS3:
    @pytest.fixture
    def store(self, port: int, monkeypatch: pytest.MonkeyPatch) -> Store:
        for name, value in variables(port).items():
            monkeypatch.setenv(name, value)
        store = Store(boto3.session.Session().client("s3"), f"bucket-{uuid.uuid4()}")
        store.keep_versions()
        return store

    def test_history_is_imported(self, store: Store) -> None:
        network, shop = documents(1), documents(2)
        for content in network:
            store.put("live/prod/network/terraform.tfstate", content.decode())
        for content in shop:
            store.put("live/env:/prod/shop.tfstate", content.decode())
            store.delete("live/env:/prod/shop.tfstate")
        store.put("live/env:/prod/shop.tfstate", shop[-1].decode() + "\n")
        source = f"s3://{store.name}/live"

        done = run(source)

        assert done.error == ""
        check_history("network/prod", network)
        check_history("shop/prod", [*shop, shop[-1] + b"\n"])
        listed = store.client.list_object_versions(Bucket=store.name, Prefix="live/prod/")
        newest = history("network/prod")[-1].imported
        assert newest.created_at == listed["Versions"][0]["LastModified"]
        assert newest.source_version == listed["Versions"][0]["VersionId"]
        assert (newest.source, newest.key) == (source, "prod/network/terraform.tfstate")
        assert set(run(source).results.values()) == {"unchanged"}

    def test_failed_states_are_reported_and_the_rest_imported(
        self, store: Store, settings: Any
    ) -> None:
        settings.STATE_MAX_BYTES = 1000
        (content,) = documents(1, 1)
        for name in ("good", "held", "large", "strange"):
            store.put(f"prod/{name}.tfstate", content.decode())
        store.put("prod/held.tfstate.tflock", '{"ID": "1", "Who": "ada@laptop"}')
        store.put("prod/large.tfstate", "x" * 1001)
        store.put("prod/strange.tfstate", "<html>")

        done = run(f"s3://{store.name}")

        assert done.error.startswith("not imported: 3 of ")
        assert done.results["prod/good.tfstate"] == "imported"
        assert "locked in the source by ada@laptop" in done.reasons["prod/held.tfstate"]
        assert "The document has 1001 bytes" in done.reasons["prod/large.tfstate"]
        assert "JSON" in done.reasons["prod/strange.tfstate"]
        check_history("good/prod", [content])


@pytest.mark.usefixtures("replay")
class TestGitLab:
    @pytest.fixture
    def service(self) -> GitLabService:
        kept = {
            name: dict(enumerate(documents(number), 1))
            for number, name in enumerate(("prod", "staging"))
        }
        return GitLabService(
            {"acme/network": [Kept(name, versions) for name, versions in kept.items()]}
        )

    @pytest.fixture
    def replay(self, service: GitLabService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
        with gitlab.serving(service) as replay:
            monkeypatch.setenv("GITLAB_URL", replay.url)
            monkeypatch.setenv("GITLAB_TOKEN", gitlab.TOKEN)
            yield replay

    @pytest.fixture
    def map_file(self, tmp_path: Path) -> Path:
        path = tmp_path / "map.toml"
        path.write_text('[[map]]\npattern = "{component}/{environment}"\n')
        return path

    def test_history_is_imported(self, service: GitLabService, map_file: Path) -> None:
        done = run("gitlab:acme", "--map", map_file)

        assert done.error == ""
        check_history("network/prod", documents(0))
        check_history("network/staging", documents(1))
        authors = [version.imported.created_by for version in history("network/prod")]
        assert authors == ["", "", "ada"]
        assert len(service.documents) == 6
        assert set(run("gitlab:acme", "--map", map_file).results.values()) == {"unchanged"}
        assert len(service.documents) == 6

    def test_a_project_of_others_fails_unless_a_map_ignores_it(
        self, service: GitLabService, map_file: Path
    ) -> None:
        service.projects["acme/shop"], service.hidden = [], {"acme/shop"}
        done = run("gitlab:acme", "--map", map_file)
        map_file.write_text(f"ignore = ['shop/**']\n{map_file.read_text()}")

        assert done.error == "not imported: 1 of 3 states"
        assert done.results["shop/"] == "failed"
        assert run("gitlab:acme", "--map", map_file).error == ""

    def test_wrong_token_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GITLAB_TOKEN", "glpat-wrong")

        done = run("gitlab:acme")

        assert "does not accept the token. Set GITLAB_TOKEN" in done.error
        assert "glpat" not in done.error + done.out + done.err
        assert not State.objects.exists()
        assert not AuditEvent.objects.exists()


class TestTfe:
    @pytest.fixture
    def serve(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Replay]]:
        with ExitStack() as started:

            def serve(answer: Any) -> Replay:
                replay = started.enter_context(Replay(answer))
                monkeypatch.setenv("TFE_ADDRESS", replay.url)
                monkeypatch.setenv("TFE_TOKEN", tfe.TOKEN)
                return replay

            yield serve

    @pytest.fixture
    def service(self) -> TfeService:
        return TfeService(
            [Workspace(name, documents(number)) for number, name in enumerate(NAMES)], is_otf=True
        )

    def test_history_is_imported(self, service: TfeService, serve: Callable[[Any], Replay]) -> None:
        serve(service.answer)

        done = run("tfe:acme")

        assert done.error == ""
        for number, name in enumerate(NAMES):
            check_history(name.replace("-", "/"), documents(number))
        times = [version.imported.created_at for version in history("network/prod")]
        assert [time.isoformat() for time in times if time is not None] == [
            f"2026-11-01T10:00:0{second}+00:00" for second in range(3)
        ]

    def test_unavailable_state_is_reported(
        self, service: TfeService, serve: Callable[[Any], Replay]
    ) -> None:
        """It stays locked between its first two versions, and the next run brings the third."""
        faults = [Reply(503, "", {"Retry-After": "0"})] * 5

        def answer(request: Request) -> Reply:
            is_faulty = request.path.endswith("/sv-network-dev-2/download")
            return faults.pop() if is_faulty and faults else service.answer(request)

        serve(answer)

        done = run("tfe:acme")

        assert done.error.startswith("not imported: 1 of ")
        assert "responded with 503. Try again later" in done.reasons["network-dev"]
        check_history("network/prod", documents(0))
        check_history("shop/prod", documents(2))
        assert stored("network/dev").lock_id is not None

        assert run("tfe:acme").error == ""
        check_history("network/dev", documents(1))


NAMES = ("network-prod", "network-dev", "shop-prod")


@test_pg.on_postgresql
def test_table_of_the_pg_backend_is_imported(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(
        '[[map]]\npattern = "{environment}"\ncomponent = "network"\n'
    )
    first, second = documents(1, 2)
    with psycopg.connect(test_pg.URL, autocommit=True) as connection:
        backend = test_pg.Backend(connection)
        try:
            backend.put("prod", first.decode())
            backend.put("staging", first.decode())
            backend.run("SELECT pg_advisory_lock(id) FROM {schema}.states WHERE name = 'staging'")

            done = run(backend.address, "--map", tmp_path / "map.toml")

            assert done.error.startswith("not imported: 1 of ")
            assert "is locked in the source" in done.reasons["staging"]
            check_history("network/prod", [first])
            backend.put("prod", second.decode())
            assert run(backend.address, "--map", tmp_path / "map.toml").json["imported"] == 1
            check_history("network/prod", [first, second])
        finally:
            backend.run("DROP SCHEMA {schema} CASCADE")
