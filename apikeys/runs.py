"""Pipeline runs, as described in the platform's token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from apikeys.models import AccessToken, Issuer

if TYPE_CHECKING:
    from apikeys.actors import Actor

#: The maximum number of characters of each value. Platforms choose the length.
MOST_CHARACTERS: Final = 200


class Run(NamedTuple):
    """A run; unknown values are empty."""

    repository: str = ""
    commit: str = ""
    id: str = ""
    url: str = ""


class TokenRun(NamedTuple):
    """The name of a token, which is empty if the token is unknown, and the token's run."""

    name: str
    run: Run


def run_of(actor: Actor) -> Run:
    """Return the run of the actor's token, with a query only for tokens from an exchange."""
    if actor.caller is None or actor.caller.trust_policy_id is None:
        return Run()
    return find_token_run(actor.token_id).run


def find_token_run(token_id: str) -> TokenRun:
    """Return the name of a token and its run, with a single query."""
    tokens = AccessToken.objects.filter(pk=token_id)
    columns = ("name", "run", "trust_policy__issuer__kind", "trust_policy__issuer__url")
    found: Any = tokens.values_list(*columns).first()
    name, claims, kind, issuer = found or ("", None, "", "")
    return TokenRun(name, _run(claims or {}, kind, issuer))


def _run(claims: dict[str, Any], kind: str | None, issuer: str | None) -> Run:
    repository, commit, run = (
        str(claims.get(name) or "")[:MOST_CHARACTERS] for name in ("repository", "commit", "run")
    )
    return Run(repository, commit, run, _url(kind, issuer, quote(repository), quote(run)))


def _url(kind: str | None, issuer: str | None, repository: str, run: str) -> str:
    """Return the URL of the run's page, or an empty text if the platform's URL is unknown."""
    if not (repository and run):
        return ""
    if kind == Issuer.Kind.GITHUB and issuer == "https://token.actions.githubusercontent.com":
        return f"https://github.com/{repository}/actions/runs/{run}"
    if kind == Issuer.Kind.GITLAB and issuer and issuer.startswith("https://"):
        return f"{issuer}/{repository}/-/pipelines/{run}"
    return ""
