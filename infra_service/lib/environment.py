"""Read settings from the environment, or from files that ``<NAME>_FILE`` names."""

from __future__ import annotations

import contextlib
import ipaddress
import math
import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import environ
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

if TYPE_CHECKING:
    from collections.abc import Callable

# The largest number of days with which date arithmetic remains valid.
_MOST_DAYS: Final = 700_000
_DAYS: Final = re.compile(r"[0-9]{1,6}", re.ASCII)
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "on", "ok", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "off", "no", "n", "0"), False),
}

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class MountedSecrets(FileAwareMapping):  # type: ignore[misc,unused-ignore]
    """A mapping that reads ``<NAME>_FILE`` before ``<NAME>``, without trailing newlines.

    Editors and ``openssl rand -base64 32 > file`` append a newline, which would invalidate a key.

    Under systemd, the process reads a credential with the same base name as the file, if the unit
    loads it (``LoadCredential=``). The original file may then be readable only by root.
    """

    def __getitem__(self, key: str) -> str:
        """Return the value.

        Raises:
            KeyError: the variable is not set.
            ImproperlyConfigured: the file cannot be read.
        """
        name = self.env.get(f"{key}_FILE")
        if not name:
            value: str = super().__getitem__(key)
            return value
        credential = Path(self.env.get("CREDENTIALS_DIRECTORY", ""), Path(name).name)
        is_loaded = credential.is_absolute() and os.access(credential, os.R_OK)
        if is_loaded:
            self._refuse_equal_base_names(key, Path(name))
        file = credential if is_loaded else Path(name)
        try:
            return file.read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
        except ValueError:
            reason = "is not UTF-8 text"
        raise ImproperlyConfigured(f"{key}_FILE names {file}, which {reason}")

    def _refuse_equal_base_names(self, key: str, file: Path) -> None:
        """Raise an error if another setting names another file with the same base name."""
        for other, name in self.env.items():
            if other.endswith("_FILE") and Path(name).name == file.name and Path(name) != file:
                raise ImproperlyConfigured(
                    f"{key}_FILE and {other} name files with the same base name, {file.name}, but "
                    "systemd loads a single credential with this name. Rename one of the files"
                )


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise ValueError(text) from None


def _at_least_zero(number: float) -> float:
    if not 0 <= number < math.inf:
        raise ValueError(number)
    return number


_TYPES: Final[dict[Any, tuple[Callable[[str], object], str]]] = {
    bool: (_boolean, "true or false"),
    int: (lambda text: _at_least_zero(int(text)), "a whole number of at least 0"),
    float: (lambda text: _at_least_zero(float(text)), "a number of at least 0"),
}


class Environment(environ.Env):  # type: ignore[misc,unused-ignore]
    """django-environ's reader with support for mounted secrets and with stricter types."""

    ENVIRON = MountedSecrets()

    def get_value(
        self, var: str, cast: Any = None, default: Any = environ.Env.NOTSET, **_: Any
    ) -> Any:
        """Return a value, converted to the type ``cast``, for methods such as ``str`` and ``int``.

        Unlike in django-environ, a leading ``$`` does not refer to another variable, because a
        secret may begin with ``$``.

        Raises:
            ImproperlyConfigured: the variable is required but missing, or has an invalid value.
        """
        try:
            value = self.ENVIRON[var]
        except KeyError:
            if default is self.NOTSET:
                raise ImproperlyConfigured(f"Set the {var} environment variable") from None
            return default
        if cast not in _TYPES:
            return self.parse_value(value, cast)
        read, form = _TYPES[cast]
        try:
            return read(value)
        except ValueError:
            raise ImproperlyConfigured(f"{var} must be {form}") from None

    def parts(self, name: str, default: object = environ.Env.NOTSET) -> list[str]:
        """Return the parts of a comma-separated value, without surrounding white space.

        Raises:
            ImproperlyConfigured: the variable is not set and has no default.
        """
        value: str = self.str(name, default=default)
        return [part.strip() for part in value.split(",") if part.strip()]

    def db_url(self, name: str, default: object = environ.Env.NOTSET) -> dict[str, Any]:
        """Return Django's database settings for a URL.

        Raises:
            ImproperlyConfigured: the URL is not set and has no default, or is malformed or empty.
                    It is empty, for example, if a shell has read ``postgres://…?a=b&c=d`` without
                    quotes.
        """
        if not self.str(name, default=default):
            raise ImproperlyConfigured(f"{name} is empty")
        found: dict[str, Any] = {}
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore")  # its text contains the password
            found = super().db_url(name, default=default)
        if "." not in found.get("ENGINE", ""):  # ENGINE may also be the scheme of the URL
            form = "postgres://USER:PASSWORD@HOST:PORT/NAME, percent-encoded, or sqlite:///PATH"
            raise ImproperlyConfigured(f"{name} must have the form {form}")
        return found

    def days(self, name: str, default: int) -> int:
        """Return a number of days, within a limit that keeps computed dates valid.

        Raises:
            ImproperlyConfigured: the value is not a number within the limit.
        """
        value: str = self.str(name, default=str(default)).strip()
        if not _DAYS.fullmatch(value) or int(value) > _MOST_DAYS:
            raise ImproperlyConfigured(f"{name} is not a number of days from 0 to {_MOST_DAYS}")
        return int(value)

    def networks(self, name: str, default: str) -> list[Network]:
        """Return the networks, such as ``10.0.0.0/8``, in a comma-separated value.

        Raises:
            ImproperlyConfigured: a part is not a network.
        """
        try:
            return [ipaddress.ip_network(part) for part in self.parts(name, default)]
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {error}") from None

    def pairs(self, name: str, default: str) -> dict[str, str]:
        """Return the pairs in a comma-separated value ``theirs=ours``. Keys may contain ``=``.

        Raises:
            ImproperlyConfigured: a part is not a pair, or a key is repeated.
        """
        found: dict[str, str] = {}
        for part in self.parts(name, default):
            theirs, _, ours = part.rpartition("=")
            if not theirs.strip() or not ours.strip() or theirs.strip() in found:
                raise ImproperlyConfigured(
                    f"{name} must have the form theirs=ours,… without repeating theirs"
                )
            found[theirs.strip()] = ours.strip()
        return found
