"""Reading HCP Terraform's and OTF's states: states.moving.tfe, against a replay of their API."""

import datetime as dt
from collections.abc import Iterator

import pytest

from states.moving.sources import (
    SourceError,
    SourceState,
    SourceWorkspace,
    TooLargeError,
    open_source,
)
from states.moving.tfe import Organization
from tests.states.moving.replay import Replay, Reply
from tests.states.moving.tfe import TOKEN, TfeService, Workspace, serving

LIMIT = 1000
DOCUMENTS = [b'{"serial": %d}' % serial for serial in (1, 2, 3)]


@pytest.fixture
def service() -> TfeService:
    return TfeService(
        [
            Workspace("network-prod", DOCUMENTS, tags={"team": "web", "eu": ""}),
            Workspace("network-dev", DOCUMENTS[:1], locked_by="grace"),
            Workspace("new", []),
        ]
    )


@pytest.fixture
def otf() -> TfeService:
    return TfeService(
        [Workspace("network-prod", DOCUMENTS), Workspace("new", [], "grace")], is_otf=True
    )


@pytest.fixture
def replay(service: TfeService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
    with serving(service) as replay:
        monkeypatch.setenv("TFE_ADDRESS", replay.url)
        monkeypatch.setenv("TFE_TOKEN", TOKEN)
        yield replay


@pytest.fixture
def source(replay: Replay) -> Organization:
    return opened()


def opened() -> Organization:
    source = open_source("tfe:acme")
    assert isinstance(source, Organization)
    return source


def read(source: Organization, name: str, most: int | None = None) -> list[bytes]:
    state = SourceState(name)
    return [source.read(state, version, LIMIT) for version in source.versions(state, most)]


def test_workspaces_with_a_state_are_listed(source: Organization) -> None:
    assert source.name == "tfe:acme"
    assert list(source.states()) == [
        SourceState(
            "network-prod", workspace=SourceWorkspace("network-prod", {"team": "web", "eu": ""})
        ),
        SourceState("network-dev", locked_by="grace", workspace=SourceWorkspace("network-dev", {})),
    ]


def test_versions_are_listed_oldest_first(source: Organization) -> None:
    assert read(source, "network-prod") == DOCUMENTS
    assert read(source, "network-prod", most=2) == DOCUMENTS[1:]
    (newest,) = source.versions(SourceState("network-prod"), 1)
    assert newest.id == "sv-network-prod-2"
    assert newest.created_at == dt.datetime(2026, 11, 1, 10, 0, 2, tzinfo=dt.UTC)
    assert newest.author == "ada"
    assert "download" not in repr(newest)
    assert source.versions(SourceState("new"), None) == []


def test_pages_contain_every_item_once(
    source: Organization, service: TfeService, replay: Replay
) -> None:
    source.page_size = 1

    assert len(list(source.states())) == 2
    pages = [request.query for request in replay.requests if request.path.endswith("/workspaces")]
    assert [query["page[number]"] for query in pages] == ["1", "2", "3"]
    assert read(source, "network-prod") == DOCUMENTS


def test_page_size_follows_the_limit(source: Organization, replay: Replay) -> None:
    source.versions(SourceState("network-prod"), 1)

    assert [request.query["page[size]"] for request in replay.requests] == ["1"]


def test_token_is_not_taken_along_to_where_documents_lie(
    source: Organization, service: TfeService
) -> None:
    assert read(source, "network-dev") == DOCUMENTS[:1]

    assert service.archivist is not None
    assert [request.path for request in service.archivist.requests] == [
        "/v1/object/sv-network-dev-0"
    ]


def test_versions_without_a_document_are_skipped(source: Organization, service: TfeService) -> None:
    service.workspaces[0].statuses = ["backing_data_soft_deleted", "finalized", "pending"]

    assert read(source, "network-prod") == DOCUMENTS[1:2]


def test_otf_is_supported(otf: TfeService, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(otf) as replay:
        monkeypatch.setenv("TFE_ADDRESS", replay.url)
        monkeypatch.setenv("TFE_TOKEN", TOKEN)
        source = opened()

        assert list(source.states()) == [
            SourceState("network-prod", workspace=SourceWorkspace("network-prod", {})),
            SourceState("new", locked_by="an unknown client", workspace=SourceWorkspace("new", {})),
        ]
        assert read(source, "network-prod") == DOCUMENTS
        assert source.versions(SourceState("network-prod"), 1)[0].author == ""
        assert source.versions(SourceState("new"), None) == []


def test_too_large_input_is_rejected(source: Organization) -> None:
    (version,) = source.versions(SourceState("network-prod"), 1)

    with pytest.raises(TooLargeError):
        source.read(SourceState("network-prod"), version, 5)


@pytest.mark.usefixtures("replay")
class TestSentences:
    def test_wrong_token_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TFE_TOKEN", "atlasv1-wrong")

        with pytest.raises(SourceError, match=r"does not accept the token\. Set TFE_TOKEN") as no:
            list(opened().states())

        assert "atlasv1" not in str(no.value)

    def test_missing_token_is_rejected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TFE_TOKEN", raising=False)
        monkeypatch.delenv("TFE_ADDRESS", raising=False)

        with pytest.raises(
            SourceError, match=r"The token for https://app\.terraform\.io is missing\. Set TFE_"
        ):
            opened()

    def test_missing_organization_is_reported(self) -> None:
        with pytest.raises(SourceError, match="has no such object, or the token"):
            list(open_source("tfe:none").states())

    def test_missing_document_is_reported(self, source: Organization, service: TfeService) -> None:
        service.gives_documents = False
        (version,) = source.versions(SourceState("network-prod"), 1)

        with pytest.raises(SourceError, match="encrypted with a key of the organization"):
            source.read(SourceState("network-prod"), version, LIMIT)

    def test_unexpected_response_is_reported(self, source: Organization, replay: Replay) -> None:
        replay.first = [Reply(200, {"data": [{}]})]

        with pytest.raises(SourceError, match="returned a response in an unknown format"):
            list(source.states())

    @pytest.mark.parametrize("text", ["tfe:", "tfe:https://app.terraform.io/app/acme"])
    def test_source_address_is_validated(self, text: str) -> None:
        with pytest.raises(SourceError, match="must have the form tfe:ORGANIZATION"):
            open_source(text)
