from enum import StrEnum


class Code(StrEnum):
    """The machine-readable kind of an error in a filter."""

    SYNTAX = "syntax"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    CHARACTER = "character"
    UNKNOWN_FIELD = "unknown_field"
    OPERATOR = "operator"
    TYPE = "type"


class FilterError(ValueError):
    """An error in a filter. The text contains the message and the suggestion.

    ``position`` counts characters from 0. ``message`` names the text expected there. ``suggestion``
    names the probable intention, or is empty.
    """

    def __init__(self, code: Code, position: int, message: str, suggestion: str = "") -> None:
        super().__init__(f"{message}; {suggestion}" if suggestion else message)
        self.code = code
        self.position = position
        self.message = message
        self.suggestion = suggestion
