"""The format of tokens, and their digest.

A token is a prefix for its kind, 32 random base62 characters (190 bits), and the CRC-32 of the
preceding text as 6 base62 characters. The service therefore rejects a mistyped token without a
query, and scanners find leaked tokens with few false alarms. The service stores only the SHA-256
digest, because a fast hash suffices for a random secret of this length.
"""

import enum
import hashlib
import re
import secrets
import string
import zlib
from typing import Final

_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH: Final = 32
_CHECKSUM_LENGTH: Final = 6
#: The number of characters of a token.
LENGTH: Final = len("isk_") + _RANDOM_LENGTH + _CHECKSUM_LENGTH

#: A pattern for secret scanners. It matches every token and little else.
TOKEN_PATTERN: Final = r"\bis[kps]_[0-9A-Za-z]{38}\b"  # noqa: S105 - a pattern
_TOKEN_FORM: Final = re.compile(r"(is[kps]_)[0-9A-Za-z]{38}", re.ASCII)


class TokenKind(enum.Enum):
    """The kinds of token, by their prefix."""

    API_KEY = "isk_"
    PERSONAL = "isp_"
    SERVICE = "iss_"

    @property
    def title(self) -> str:
        """Return the name of the kind, for use in messages."""
        return {
            TokenKind.API_KEY: "API key",
            TokenKind.PERSONAL: "personal access token",
            TokenKind.SERVICE: "service access token",
        }[self]


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, remainder = divmod(number, 62)
        digits.append(_ALPHABET[remainder])
    return "".join(reversed(digits))


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode("ascii")), _CHECKSUM_LENGTH)


def generate(kind: TokenKind) -> str:
    """Return a new secret of this kind."""
    body = kind.value + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))
    return body + _checksum(body)


def kind_of(token: str) -> TokenKind | None:
    """Return the token's kind, or None if its format or checksum is wrong."""
    match = _TOKEN_FORM.fullmatch(token)
    if match is None or _checksum(token[:-_CHECKSUM_LENGTH]) != token[-_CHECKSUM_LENGTH:]:
        return None
    return TokenKind(match[1])


def digest(token: str) -> bytes:
    """Return the 32-byte digest under which the token is stored."""
    return hashlib.sha256(token.encode("ascii")).digest()
