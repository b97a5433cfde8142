"""Reading the states of a bucket: states.moving.s3, against moto's server."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from states.moving.s3 import Bucket
from states.moving.sources import (
    Source,
    SourceError,
    SourceState,
    SourceVersion,
    TooLargeError,
    open_source,
)
from tests.e2e import object_store
from tests.states.moving.replay import Replay, Reply, Request
from tests.support.postgres import free_port

LIMIT = 1000


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with object_store.running() as port:
        yield port


@pytest.fixture
def environment(port: int, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Set the environment variables that boto3 reads."""
    for name, value in variables(port).items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture(scope="module")
def client(port: int) -> Any:
    """Share a client, because creating it takes longer than most tests."""
    return boto3.session.Session("key", "secret", region_name="us-east-1").client(
        "s3", endpoint_url=f"http://127.0.0.1:{port}"
    )


def variables(port: int) -> dict[str, str]:
    """Return all environment variables for the store on this port."""
    return {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "very-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }


class Store:
    """A separate bucket, with helpers that write to it."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name
        self.client.create_bucket(Bucket=name)

    def keep_versions(self) -> None:
        self.client.put_bucket_versioning(
            Bucket=self.name, VersioningConfiguration={"Status": "Enabled"}
        )

    def put(self, key: str, *bodies: str) -> None:
        for body in bodies:
            self.client.put_object(Bucket=self.name, Key=key, Body=body.encode())

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=key)

    def source(self, folder: str = "") -> Bucket:
        return Bucket(self.client, self.name, folder)


@pytest.fixture
def forgetful(client: Any) -> Store:
    """A bucket that keeps no versions."""
    return Store(client, f"bucket-{uuid.uuid4()}")


@pytest.fixture
def store(forgetful: Store) -> Store:
    """A bucket that keeps versions."""
    forgetful.keep_versions()
    return forgetful


def found(source: Source, key: str) -> SourceState:
    return next(state for state in source.states() if state.key == key)


def contents(source: Bucket, key: str, most: int | None = None) -> list[str]:
    """Return the documents of each version of a state, the oldest first."""
    state = found(source, key)
    return [source.read(state, version, LIMIT).decode() for version in source.versions(state, most)]


def keys(source: Bucket) -> list[str]:
    return [state.key for state in source.states()]


def test_states_of_a_folder_are_listed(store: Store) -> None:
    for key in ("live/a.tfstate", "live/b/c.tfstate", "live2/d.tfstate", "live/", "e", "live/f"):
        store.put(key, key)

    assert keys(store.source("live")) == ["a.tfstate", "b/c.tfstate", "f"]
    assert keys(store.source("live/")) == ["a.tfstate", "b/c.tfstate", "f"]
    assert "live/b/c.tfstate" in keys(store.source())
    assert contents(store.source("live"), "b/c.tfstate") == ["live/b/c.tfstate"]


@pytest.mark.usefixtures("environment")
def test_name_is_the_same_however_it_is_written() -> None:
    assert open_source("s3://states/live/").name == "s3://states/live"
    assert open_source("s3://states/live").name == "s3://states/live"
    assert open_source("s3://states").name == "s3://states"


def test_versions_of_the_exact_key_are_listed_oldest_first(store: Store) -> None:
    store.put("a.tfstate", "1", "2", "3")
    store.put("a.tfstate.backup", "0")
    store.put(".terraform/terraform.tfstate", "0")
    store.put("b/.terraform/terraform.tfstate", "0")
    store.put("a.tfstate2", "other")
    source = store.source()

    assert contents(source, "a.tfstate") == ["1", "2", "3"]
    assert contents(source, "a.tfstate", most=2) == ["2", "3"]
    assert contents(source, "a.tfstate", most=1) == ["3"]
    assert keys(source) == ["a.tfstate", "a.tfstate2"]


def test_version_has_a_time_and_a_size_and_an_id_of_the_store(store: Store) -> None:
    store.put("a.tfstate", "12345")
    (stored_version,) = store.client.list_object_versions(Bucket=store.name)["Versions"]

    source = store.source()
    (version,) = source.versions(found(source, "a.tfstate"), None)

    assert version == SourceVersion(
        stored_version["VersionId"], stored_version["LastModified"], size_bytes=5
    )


def test_listings_are_paginated(store: Store) -> None:
    for key in ("a", "b", "c", "d", "e"):
        store.put(key, *(f"{key}{number}" for number in range(5)))
    source = store.source()
    source.page_size = 2

    assert keys(source) == ["a", "b", "c", "d", "e"]
    assert contents(source, "b") == ["b0", "b1", "b2", "b3", "b4"]
    assert contents(source, "b", most=3) == ["b2", "b3", "b4"]


def test_deleted_is_no_state(store: Store) -> None:
    store.put("a", "1")
    store.put("b", "1")
    store.delete("a")

    assert keys(store.source()) == ["b"]


def test_deleted_and_made_again_has_all_its_past(store: Store) -> None:
    store.put("a", "1", "2")
    store.delete("a")
    store.put("a", "3")
    store.delete("a")
    store.put("a", "4")
    source = store.source()
    source.page_size = 1

    assert keys(source) == ["a"]
    assert contents(source, "a") == ["1", "2", "3", "4"]
    assert contents(source, "a", most=2) == ["3", "4"]


def test_from_before_the_bucket_kept_versions(forgetful: Store) -> None:
    forgetful.put("a", "1")
    forgetful.keep_versions()
    forgetful.put("a", "2")

    assert contents(forgetful.source(), "a") == ["1", "2"]


def test_without_versions_another_content_is_another_version(forgetful: Store) -> None:
    forgetful.put("a", "1")
    source = forgetful.source()
    first = source.versions(found(source, "a"), None)
    assert source.versions(found(source, "a"), None) == first
    assert contents(source, "a") == ["1"]

    forgetful.put("a", "2")

    (second,) = source.versions(found(source, "a"), None)
    assert second.id != first[0].id
    with pytest.raises(SourceError, match="changed while it was being read"):
        source.read(SourceState("a"), first[0], LIMIT)


def test_locks_are_reported_with_their_holders(store: Store) -> None:
    for key in ("a.tfstate", "a.tfstate-2", "b.tfstate", "c.tfstate"):
        store.put(key, "1")
    store.put("a.tfstate.tflock", json.dumps({"ID": "1", "Who": "ada@laptop"}))
    store.put("c.tfstate.tflock", "not LockInfo")

    holders = {state.key: state.locked_by for state in store.source().states()}

    assert holders == {
        "a.tfstate": "ada@laptop",
        "a.tfstate-2": None,
        "b.tfstate": None,
        "c.tfstate": "an unknown client",
    }


def test_locks_of_the_gcs_backend_are_reported(forgetful: Store) -> None:
    for name in ("dev", "dev-2", "qa"):
        forgetful.put(f"app/{name}.tfstate", "1")
    forgetful.put("app/dev.tflock", json.dumps({"ID": "1", "Who": "ada@laptop"}))

    holders = {state.key: state.locked_by for state in forgetful.source("app").states()}

    assert holders == {"dev.tfstate": "ada@laptop", "dev-2.tfstate": None, "qa.tfstate": None}


def test_too_large_is_not_read(store: Store) -> None:
    store.put("a", "x" * (LIMIT + 1))
    source = store.source()
    state = found(source, "a")

    with pytest.raises(TooLargeError, match=f"has {LIMIT + 1} bytes"):
        source.read(state, source.versions(state, 1)[0], LIMIT)


def test_a_listing_of_all_versions_is_enough(store: Store) -> None:
    for key in ("a", "b", "c"):
        store.put(key, "1", "2")
    operations: list[str] = []
    remember = lambda model, **_: operations.append(model.name)  # noqa: E731 - of one line
    store.client.meta.events.register("before-call.s3", remember, unique_id="test")
    try:
        source = store.source()
        listed = [source.versions(state, None) for state in source.states()]
    finally:
        store.client.meta.events.unregister("before-call.s3", unique_id="test")

    assert [len(versions) for versions in listed] == [2, 2, 2]
    assert operations == ["ListObjectVersions", "ListObjectVersions"]


def test_released_lock_is_ignored(store: Store) -> None:
    """In a bucket that keeps versions, its past stays."""
    store.put("a.tfstate", "1")
    store.put("a.tfstate.tflock", "{}")
    store.delete("a.tfstate.tflock")

    assert [state.locked_by for state in store.source().states()] == [None]


def test_state_deleted_in_the_meantime_is_skipped(store: Store) -> None:
    store.put("a", "1")
    source = store.source()
    state = found(source, "a")
    (version,) = source.versions(state, None)
    store.client.delete_object(Bucket=store.name, Key="a", VersionId=version.id)

    with pytest.raises(SourceError, match="The object no longer exists"):
        source.read(state, version, LIMIT)


@pytest.mark.usefixtures("environment")
class TestSentences:
    def test_missing_bucket_is_reported(self, port: int) -> None:
        with pytest.raises(
            SourceError, match=rf"The bucket none does not exist at http://127\.0\.0\.1:{port}\."
        ):
            list(open_source("s3://none/x").states())

    def test_missing_credentials_are_rejected(self, environment: pytest.MonkeyPatch) -> None:
        environment.delenv("AWS_ACCESS_KEY_ID")
        environment.delenv("AWS_SECRET_ACCESS_KEY")

        with pytest.raises(SourceError, match="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
            list(open_source("s3://states").states())

    def test_unreachable_server_is_reported(self, environment: pytest.MonkeyPatch) -> None:
        environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
        environment.setenv("AWS_MAX_ATTEMPTS", "1")

        with pytest.raises(SourceError, match=r"does not respond\. Check AWS_ENDPOINT_URL"):
            list(open_source("s3://states").states())

    def test_refused_proxy_is_reported(self, environment: pytest.MonkeyPatch) -> None:
        environment.setenv("AWS_ENDPOINT_URL", "https://s3.example")
        environment.setenv("AWS_MAX_ATTEMPTS", "1")
        environment.setenv("https_proxy", f"http://ada:very-secret@127.0.0.1:{free_port()}")

        with pytest.raises(SourceError, match="does not respond through the proxy in HTTPS_PROXY"):
            list(open_source("s3://states").states())

    def test_plain_http_is_allowed_only_on_this_machine(
        self, environment: pytest.MonkeyPatch
    ) -> None:
        environment.setenv("AWS_ENDPOINT_URL", "http://minio.example:9000")

        with pytest.raises(SourceError, match="AWS_ENDPOINT_URL must have the form"):
            open_source("s3://states")

    @pytest.mark.parametrize(
        "text", ["s3://", "s3:///a", "s3://key:pass@states/a", "s3://a?b=c", "s3://[a"]
    )
    def test_source_address_is_validated(self, text: str) -> None:
        with pytest.raises(SourceError, match="must have the form s3://bucket/prefix") as raised:
            open_source(text)

        assert "pass" not in str(raised.value)

    @pytest.mark.parametrize(
        ("status", "code", "sentence"),
        [
            (403, "AccessDenied", "refuses ListObjectsV2 in bucket states .* s3:ListBucket,"),
            (403, "InvalidAccessKeyId", "refuses ListObjectsV2 .* Set AWS_ACCESS_KEY_ID"),
            (503, "SlowDown", "responds to ListObjectsV2 with SlowDown"),
        ],
    )
    def test_denied_access_is_reported(
        self, status: int, code: str, sentence: str, environment: pytest.MonkeyPatch
    ) -> None:
        """Use a replay server, because moto does not authenticate."""
        environment.setenv("AWS_MAX_ATTEMPTS", "1")
        with Replay(lambda _: Reply(status, f"<Error><Code>{code}</Code></Error>")) as replay:
            environment.setenv("AWS_ENDPOINT_URL", replay.url)

            with pytest.raises(SourceError, match=sentence) as raised:
                list(open_source("s3://states").states())

        assert "very-secret" not in str(raised.value)

    def test_store_without_version_ids_is_supported(self, environment: pytest.MonkeyPatch) -> None:
        """Google's has generations where S3 has ids of versions."""

        def reply(request: Request) -> Reply:
            entry = '<Key>a</Key><ETag>"1"</ETag><Size>2</Size>'
            if "versions" in request.query:
                entry = f"<Version>{entry}<Generation>17</Generation></Version>"
                return Reply(200, f"<ListBucketResult>{entry}</ListBucketResult>")
            if "list-type" in request.query:
                entry += "<LastModified>2026-11-01T10:00:00Z</LastModified>"
                return Reply(
                    200,
                    f"<ListBucketResult><Contents>{entry}</Contents></ListBucketResult>",
                )
            return Reply(200, "{}")

        with Replay(reply) as replay:
            environment.setenv("AWS_ENDPOINT_URL", replay.url)
            source = open_source("s3://states")

            (state,) = source.states()
            (version,) = source.versions(state, None)

            assert state.key == "a"
            assert version.id == 'etag/"1"'
            assert source.read(state, version, LIMIT) == b"{}"
            assert replay.requests[-1].headers["If-Match"] == '"1"'
            assert "versionId" not in replay.requests[-1].query
