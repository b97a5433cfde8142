"""The mapping of a source's keys to names of states: ``map.toml``, or the default patterns."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra_service.lib.api.suggestions import did_you_mean
from states import slugs, workspaces
from states.addresses import Names

if TYPE_CHECKING:
    from pathlib import Path

_TOKEN: Final = re.compile(r"\{(\w+)\}|\*\*|\*")
_PLACE: Final = re.compile(r"\{(\w*)\}")
_FIELDS: Final = Names._fields
_PART: Final = "[^/]+"
#: A path segment that is not one of Terraform's own names. These are its folders, the files of the
#: default workspace, and ``errored.tfstate``, a state that it could not write to its backend.
_USUAL_PART: Final = (
    r"(?!(?:terraform\.tfstate\.d|env:|\.terraform)/|(?:terraform|default|errored)\.tfstate$)[^/]+"
)
#: The default patterns, in the order in which they are tried.
USUAL: Final = (
    # Workspaces of the s3 backend (``env:``) and of the local backend (``terraform.tfstate.d``).
    "env:/{environment}/{component}/terraform.tfstate",
    "env:/{environment}/{component}.tfstate",
    "{component}/terraform.tfstate.d/{environment}/terraform.tfstate",
    "{environment}/{component}/terraform.tfstate",
    "{environment}/{component}.tfstate",
)
#: Keys without a slash, such as workspaces of HCP Terraform, are split at the last dash.
_WORKSPACE: Final = re.compile(r"(?P<component>[^/.]+)-(?P<environment>[^/.-]+)")
#: The workspaces of one configuration, first in the local and s3 backends, then in the gcs backend
#: (with ``.tfstate``) and the pg backend.
_WORKSPACES: Final = (
    re.compile(r"(?:terraform\.tfstate\.d|env:)/(?P<environment>[^/]+)/terraform\.tfstate"),
    re.compile(r"(?!errored\.tfstate$)(?P<environment>[^/.]+)(?:\.tfstate)?"),
)
_DEFAULT_FILE: Final = "terraform.tfstate"
_OF_A_WORKSPACE: Final = re.compile(
    r"(?:.*/)?(?:(?:terraform\.tfstate\.d|env:)/.*|(?:terraform|default)\.tfstate)", re.DOTALL
)
_ERRORED: Final = re.compile(r"(?:.*/)?errored\.tfstate", re.DOTALL)


class MapError(Exception):
    """An unusable map; the message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern for keys, and the templates of the names for matching keys."""

    pattern: re.Pattern[str]
    texts: dict[str, str]

    def names(self, key: str) -> Names | None:
        """Return the names for a key as slugs, or None if the pattern does not match."""
        found = self.pattern.fullmatch(key)
        if found is None:
            return None
        parts = found.groupdict()
        made = {
            field: _PLACE.sub(lambda place: parts[place[1]], text)
            for field, text in self.texts.items()
        }
        return Names(**{field: slugs.slug_of(text, field) for field, text in made.items()})


class Map:
    """The mapping of keys to states, and the keys to ignore."""

    def __init__(self, rules: list[Rule], ignored: list[re.Pattern[str]]) -> None:
        self._rules, self._ignored = rules, ignored

    def names(self, key: str) -> Names | None:
        """Return the names from the first rule that matches the key, or None without a match."""
        made = (rule.names(key) for rule in self._rules)
        return next((names for names in made if names is not None), None)

    def is_ignored(self, key: str) -> bool:
        return any(pattern.fullmatch(key) for pattern in self._ignored)

    @classmethod
    def default(cls) -> Map:
        rules = [_rule({"pattern": pattern}, part=_USUAL_PART) for pattern in USUAL]
        return cls([*rules, Rule(_WORKSPACE, _texts(_WORKSPACE))], [])

    @classmethod
    def of_workspaces(cls, component: str) -> Map:
        """Return the map for the workspaces of a configuration, with the slug of its component.

        Raises:
            MapError: the component is not a slug.
        """
        if not slugs.is_slug(component, "component"):
            raise MapError(f"A component must be {slugs.DESCRIPTION}.")
        given = {"component": component}
        default = Rule(re.compile(re.escape(_DEFAULT_FILE)), {**given, "environment": "default"})
        return cls([default, *(Rule(p, {**given, **_texts(p)}) for p in _WORKSPACES)], [])

    @classmethod
    def of_remote(cls) -> Map:
        """Return the map by which workspaces keep their names in the remote backend."""
        return _RemoteMap([], [])

    @classmethod
    def read(cls, path: Path) -> Map:
        """Read a map from a file.

        Raises:
            MapError: the file is unreadable or invalid.
        """
        try:
            content = tomllib.loads(path.read_text())
        except OSError as error:
            raise MapError(f"{path}: {error.strerror}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise MapError(f"{path} is not TOML: {error}.") from error
        try:
            return cls._of(content)
        except MapError as error:
            raise MapError(f"{path}: {error}") from error

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Map:
        _check_names(content, ("map", "ignore"))
        rules, ignored = content.get("map", []), content.get("ignore", [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise MapError("A rule must start with [[map]].")
        if not isinstance(ignored, list) or not all(isinstance(text, str) for text in ignored):
            raise MapError("ignore must be a list of patterns.")
        return cls([_rule(rule) for rule in rules], [_compiled(text) for text in ignored])


class _RemoteMap(Map):
    """A map that keeps workspace names."""

    def names(self, key: str) -> Names | None:
        return workspaces.names_of(key) if workspaces.is_name(key) else None


def unmatched(key: str) -> str:
    """Return the reason for refusing a key without a match, and a remedy if known."""
    if _ERRORED.fullmatch(key):
        return (
            "No pattern matches. Terraform could not write this state to its backend. Push the "
            "state to its backend (terraform state push errored.tfstate), and import from there."
        )
    if _OF_A_WORKSPACE.fullmatch(key):
        return (
            "No pattern matches. The state is a workspace of a configuration. Import the folder "
            "of the configuration with --component NAME, or write a map."
        )
    return "No pattern matches."


def _texts(pattern: re.Pattern[str]) -> dict[str, str]:
    """Return templates that insert the text of the placeholders with the same names."""
    return {field: f"{{{field}}}" for field in pattern.groupindex}


def _rule(given: dict[str, Any], part: str = _PART) -> Rule:
    _check_names(given, ("pattern", *_FIELDS))
    if not all(isinstance(text, str) for text in given.values()):
        raise MapError("The values of a rule must be text.")
    if "pattern" not in given:
        raise MapError("A rule must have a pattern.")
    pattern = _compiled(given["pattern"], part)
    texts = {
        field: given.get(field, f"{{{field}}}")
        for field in _FIELDS
        if field in given or field in pattern.groupindex
    }
    for field in ("component", "environment"):
        if field not in texts:
            raise MapError(
                f"The pattern {given['pattern']!r} does not set the {field}. Add {{{field}}} to "
                f"the pattern, or a line {field} = … to the rule."
            )
    for text in texts.values():
        for place in _PLACE.findall(text):
            if place not in pattern.groupindex:
                raise MapError(f"The pattern {given['pattern']!r} has no {{{place}}}.")
    return Rule(pattern, texts)


def _compiled(text: str, part: str = _PART) -> re.Pattern[str]:
    """Return a pattern for a path, in which ``**`` matches anything.

    ``{name}`` matches a path segment, and ``*`` matches a part of a segment.
    """
    made, end = "", 0
    names: set[str] = set()
    for token in _TOKEN.finditer(text):
        made += re.escape(text[end : token.start()])
        end = token.end()
        name = token[1]
        if name is None:
            made += ".*" if token[0] == "**" else "[^/]*"
        elif name in names:
            made += f"(?P={name})"
        elif not name.isidentifier():
            raise MapError(f"{{{name}}} is not a valid name.")
        else:
            names.add(name)
            made += f"(?P<{name}>{part})"
    return re.compile(made + re.escape(text[end:]))


def _check_names(given: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise MapError(f"A map does not support the key {name!r}{did_you_mean(name, known)}")
