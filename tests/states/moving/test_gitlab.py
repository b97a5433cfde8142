"""Reading GitLab's states: states.moving.gitlab, against a replay of its API."""

import datetime as dt
from collections.abc import Iterator

import pytest

from states.moving.gitlab import GitLab
from states.moving.sources import (
    SourceError,
    SourceState,
    SourceVersion,
    TooLargeError,
    open_source,
)
from tests.states.moving.gitlab import TOKEN, GitLabService, Kept, serving
from tests.states.moving.replay import Replay, Reply

LIMIT = 1000
NEWEST_AT = dt.datetime(2026, 11, 1, 10, tzinfo=dt.UTC)


def document(serial: int) -> bytes:
    return b'{"serial": %d}' % serial


def documents(*serials: int) -> dict[int, bytes]:
    return {serial: document(serial) for serial in serials}


@pytest.fixture
def service() -> GitLabService:
    return GitLabService(
        {
            "acme/network": [
                Kept("prod", documents(1, 2, 3), number=7),
                Kept("staging", documents(5), locked_by="grace"),
                Kept("new", {}),
                Kept("dev.eu", documents(1), author=None),
            ],
            "acme/shop/web": [Kept("prod", documents(1))],
            "acme/empty": [],
        }
    )


@pytest.fixture
def replay(service: GitLabService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
    with serving(service) as replay:
        monkeypatch.setenv("GITLAB_URL", replay.url)
        monkeypatch.setenv("GITLAB_TOKEN", TOKEN)
        yield replay


@pytest.fixture
def source(replay: Replay) -> GitLab:
    source = open_source("gitlab:acme/network")
    assert isinstance(source, GitLab)
    return source


def test_states_of_a_project_are_listed(source: GitLab) -> None:
    assert source.name == "gitlab:acme/network"
    assert list(source.states()) == [
        SourceState("prod"),
        SourceState("staging", locked_by="grace"),
        SourceState("dev.eu"),
    ]


def test_states_of_a_group_are_called_after_their_project_too(replay: Replay) -> None:
    source = open_source("gitlab:acme")

    assert [state.key for state in source.states()] == [
        "network/prod",
        "network/staging",
        "network/dev.eu",
        "shop/web/prod",
    ]
    (version,) = source.versions(SourceState("shop/web/prod"), None)
    assert source.read(SourceState("shop/web/prod"), version, LIMIT) == document(1)


def test_versions_are_listed_oldest_first(source: GitLab) -> None:
    state = SourceState("prod")
    newest = SourceVersion("7/3", NEWEST_AT, "ada")

    assert source.versions(state, 1) == [newest]
    assert source.versions(state, 2) == [SourceVersion("7/2"), newest]
    all_of_them = source.versions(state, None)
    assert all_of_them == [SourceVersion("7/1"), SourceVersion("7/2"), newest]
    assert [source.read(state, version, LIMIT) for version in all_of_them] == [
        document(1),
        document(2),
        document(3),
    ]


def test_limit_of_one_fetches_only_the_newest_version(
    source: GitLab, service: GitLabService, replay: Replay
) -> None:
    source.versions(SourceState("prod"), 1)

    assert len(replay.requests) == 1
    assert service.documents == []


def test_skipped_serials_are_accepted(source: GitLab, service: GitLabService) -> None:
    service.projects["acme/network"][0].versions = documents(0, 3, 90, 91)

    versions = source.versions(SourceState("prod"), None)

    assert [version.id for version in versions] == ["7/0", "7/3", "7/90", "7/91"]


def test_where_serials_are_taken_to_begin(
    source: GitLab, service: GitLabService, replay: Replay
) -> None:
    service.projects["acme/network"][0].versions = documents(1, 10_000)

    assert [version.id for version in source.versions(SourceState("prod"), None)] == ["7/10000"]
    assert len(replay.requests) == 1 + 100


def test_versions_have_no_author(source: GitLab) -> None:
    (version,) = source.versions(SourceState("dev.eu"), None)

    assert version.author == ""


def test_made_again_is_another(source: GitLab, service: GitLabService) -> None:
    before = source.versions(SourceState("prod"), 1)
    service.projects["acme/network"][0].number = 8

    assert source.versions(SourceState("prod"), 1) != before


def test_too_large_input_is_rejected(source: GitLab) -> None:
    (version,) = source.versions(SourceState("prod"), 1)

    with pytest.raises(TooLargeError):
        source.read(SourceState("prod"), version, 5)


def test_state_deleted_in_the_meantime_is_skipped(source: GitLab, service: GitLabService) -> None:
    service.projects["acme/network"][0].versions = {}

    assert source.versions(SourceState("prod"), None) == []
    with pytest.raises(SourceError, match="has no such object"):
        source.read(SourceState("prod"), SourceVersion("7/3"), LIMIT)


@pytest.mark.usefixtures("replay")
class TestSentences:
    def test_wrong_token_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GITLAB_TOKEN", "glpat-wrong")

        with pytest.raises(
            SourceError, match=r"does not accept the token\. Set GITLAB_TOKEN"
        ) as no:
            list(open_source("gitlab:acme/network").states())

        assert "glpat" not in str(no.value)

    def test_missing_token_is_rejected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("GITLAB_TOKEN", raising=False)
        monkeypatch.delenv("GITLAB_URL", raising=False)
        monkeypatch.delenv("CI_API_V4_URL", raising=False)

        with pytest.raises(
            SourceError, match=r"The token for https://gitlab\.com is missing\. Set GITLAB"
        ):
            open_source("gitlab:acme")

    def test_path_without_a_project_or_group_is_reported(self) -> None:
        with pytest.raises(SourceError, match="has no such object, or the token"):
            list(open_source("gitlab:none").states())

    def test_insufficient_role_is_reported(self, source: GitLab, service: GitLabService) -> None:
        service.hidden = {"acme/network"}

        with pytest.raises(SourceError, match="needs the Developer role"):
            list(source.states())

    @pytest.mark.usefixtures("replay")
    def test_insufficient_role_in_a_project_of_a_group_is_reported(
        self, service: GitLabService
    ) -> None:
        """GitLab lists no states instead of an error."""
        service.hidden, service.disabled = {"acme/network"}, {"acme/shop/web"}

        (state,) = open_source("gitlab:acme").states()

        assert state.key == "network/"
        assert state.problem.startswith("The token in GITLAB_TOKEN cannot read the states of acme/")
        assert state.problem.endswith("skip the project with a map: ignore = ['network/**']")

    def test_graphql_error_is_reported(self, source: GitLab, replay: Replay) -> None:
        project = Reply(200, {"path_with_namespace": "acme/network"})
        replay.first = [project, Reply(200, {"errors": [{"message": "Query too complex"}]})]

        with pytest.raises(SourceError, match="responded: Query too complex"):
            list(source.states())

    def test_unexpected_response_is_reported(self, source: GitLab, replay: Replay) -> None:
        replay.first = [Reply(200, {}), Reply(200, {"data": {"project": {}}})]

        with pytest.raises(SourceError, match="returned a response in an unknown format"):
            list(source.states())

    @pytest.mark.parametrize("text", ["gitlab:", "gitlab:/", "gitlab:https://gitlab.example/acme"])
    def test_source_address_is_validated(self, text: str) -> None:
        with pytest.raises(SourceError, match="must have the form gitlab:group/project"):
            open_source(text)


def test_address_as_a_pipeline_has_it(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITLAB_URL")
    monkeypatch.setenv("CI_API_V4_URL", f"{replay.url}/api/v4")

    assert next(open_source("gitlab:acme/network").states()).key == "prod"
