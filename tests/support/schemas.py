"""JSON schemas. Their validator takes a second to load, so only the first use loads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def violations(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return messages of a value's violations of a schema; fail if the schema is invalid."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - see above

    draft = validators.validator_for(schema, default=Draft202012Validator)
    draft.check_schema(schema)
    validator = draft(schema, format_checker=draft.FORMAT_CHECKER)
    return [error.message for error in validator.iter_errors(value)]
