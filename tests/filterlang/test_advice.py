"""Advice in errors: applied, it leads to the meaning that was intended, or to no filter at all."""

import re

import pytest

from filterlang.compiler import compile_filter
from filterlang.errors import FilterError
from tests.filterlang.rows import RowFilters

# Suggestions that explain a rule, or leave the choice to the writer.
EXPLANATIONS = re.compile(
    r"|allowed: .*|fields cannot be compared .*|functions are not available"
    r"|numbers are integers; quote text and versions|patterns are not available; .*"
    r"|put AND or OR between two terms.*|test for null with IS NULL or IS NOT NULL"
    r"|use = for the whole text, or CONTAINS .*|use IS NULL or IS NOT NULL, or = with a value"
    r"|use straight quotes|a value in ['\"] cannot end with \\|write labels\['<key>'\]"
)
OPERATOR = re.compile(r"is\s+not|not\s*=|not\b(?!\s+in\b)|!?[a-z_]+|[!<>=&|~]+", re.IGNORECASE)
TERM = re.compile(
    r"(?:not\s+)?(?:\w+\([^)]*\)|(?:fields?|labels?)\s*[\[(.][^=]*?(?:\]|\)|(?=\s*[=!<>]|$))"
    r"|'\w+'|\"\w+\"|[\w.]+\([^)]*\)|\w+)",
    re.IGNORECASE,
)
PREDICATE = re.compile(r"\.?(?:not[\s_]*)?!?\s*\w+(?:\([^)]*\)|\s*'[^']*'|)", re.IGNORECASE)
NEGATED_OPERATOR = re.compile(r"(?:is\s+)?(?:not[\s_]*|!\s*)(?:\w+|[~<>=]+)", re.IGNORECASE)


def spliced(text, start, end, new):
    return text[:start] + new + text[end:]


def same_length(text, at, found):
    return spliced(text, at, at + len(found[1]), found[1])


def quoted(text, at, found):
    assert text.startswith(found[1], at)
    return spliced(text, at, at + len(found[1]), f"'{found[1]}'")


def another_value(text, at, found):
    return spliced(text, at, text.index(text[at], at + 1) + 1, f"'{found[1]}'")


def rewritten(text, at, found):
    """Replace the field, or the whole term when the suggestion has an operator."""
    new = found[1]
    before = re.search(r"(?:field|labels)\[[^\]]*\]\s*(?:!?=)?\s*$", text[:at])
    if before is None:
        return spliced(text, at, TERM.match(text, at).end(), new)
    ends_with_operator = re.search(r"(?:_WITH|CONTAINS|BETWEEN|EXISTS|~=|[<>]=?)$", new)
    replaced = NEGATED_OPERATOR if ends_with_operator else PREDICATE
    return spliced(text, before.start(), replaced.match(text, at).end(), new)


FORMS = {
    r"did you mean NOT in place of . \?": lambda t, at, _: spliced(t, at, at + 1, "NOT "),
    r"did you mean ([^']+) \?": lambda t, at, found: spliced(
        t, at, OPERATOR.match(t, at).end(), f"{found[1]} "
    ),
    r"did you mean '(.*)'\?": another_value,
    r"quote the (?:name|value): '(.*)'": quoted,
    r"use straight quotes: ('.*')": same_length,
    r"close it with (.)": lambda t, _, found: t + found[1],
    r"write (.) at the end in place of .": lambda t, _, found: t[:-1] + found[1],
    r"write a space in its place": lambda t, at, _: spliced(t, at, at + 1, " "),
    r"write (.+) in its place": lambda t, at, found: spliced(t, at, at + 1, found[1]),
    r"remove it": lambda t, at, _: spliced(t, at, at + 1, ""),
    r"remove U\+([0-9A-F]+) \(.*\)": lambda t, at, found: (
        t[:at] + t[at:].replace(chr(int(found[1], 16)), "", 1)
    ),
    r"put a space after (\w+)": lambda t, at, found: spliced(
        t, at, at + len(found[1]), f"{found[1]} "
    ),
    r"put a space before and after (\w+)": lambda t, at, found: (
        t[:at] + t[at:].replace(found[1], f" {found[1]} ", 1)
    ),
    r"write a quote inside a value twice: (..)": lambda t, at, found: spliced(
        t, at - 1, at, found[1]
    ),
    r"(?:add|write)[^:\[]*: '(.*)'": another_value,
    r"write (NOT .+?|(?:field|labels)\[.+?)(?:, because .*)?": rewritten,
    r"write ([A-Z_~=]+ '.*'), because .*": lambda t, at, found: spliced(
        t, at, re.compile(r"\w+\s*'[^']*'").match(t, at).end(), found[1]
    ),
}


def applied(text, error):
    """Return the text with the suggestion applied, or null if it only explains a rule."""
    if EXPLANATIONS.fullmatch(error.suggestion):
        return None
    for form, apply in FORMS.items():
        if found := re.fullmatch(form, error.suggestion):
            return apply(text, error.position, found)
    raise AssertionError(f"a form of advice that this test does not know: {error.suggestion}")


def outcome(text):
    """Return the filter after following all suggestions, or null without a valid filter."""
    for _ in range(6):
        try:
            return compile_filter(RowFilters, text)
        except FilterError as error:
            text = applied(text, error)
        if text is None:
            return None
    raise AssertionError(f"the advice leads nowhere: {text}")


LEADS_TO = [
    # SQL
    ("field['name'] == 'web'", "field['name'] = 'web'"),
    ("field['name'] <> 'web'", "field['name'] != 'web'"),
    ("field['name'] !== 'web'", "field['name'] != 'web'"),
    ("field['name'] LIKE 'web%'", "field['name'] STARTS_WITH 'web'"),
    ("field['name'] like '%web'", "field['name'] ENDS_WITH 'web'"),
    ("field['name'] LIKE '%web%'", "field['name'] CONTAINS 'web'"),
    ("field['name'] LIKE 'web'", "field['name'] = 'web'"),
    ("field['name'] ILIKE '%web%'", "field['name'] ~= 'web'"),
    ("field['name'] NOT LIKE 'web%'", "NOT field['name'] STARTS_WITH 'web'"),
    ("labels['app'] = null", "labels['app'] IS NULL"),
    ("field['note'] = NULL", "field['note'] IS NULL"),
    ("field['note'] != nil", "field['note'] IS NOT NULL"),
    ("field['note'] == null", "field['note'] IS NULL"),
    ("field['note'] ISNULL", "field['note'] IS NULL"),
    ("field['note'] NOTNULL", "field['note'] IS NOT NULL"),
    ("field['note'] IS NOT 'x'", "field['note'] != 'x'"),
    ("field['note'] IS 'x'", "field['note'] = 'x'"),
    ("field['paused'] IS TRUE", "field['paused'] = true"),
    ("labels['app'] NOT EXISTS", "NOT labels['app'] EXISTS"),
    ("labels['app'] NOT_EXISTS", "NOT labels['app'] EXISTS"),
    ("labels['app'] !EXISTS", "NOT labels['app'] EXISTS"),
    ("field['replicas'] NOT BETWEEN 0 AND 3", "NOT field['replicas'] BETWEEN 0 AND 3"),
    ("labels['x'] NOT STARTS_WITH 'a'", "NOT labels['x'] STARTS_WITH 'a'"),
    ("labels['x'] NOT CONTAINS 'a'", "NOT labels['x'] CONTAINS 'a'"),
    ("labels['x'] not ends_with 'a'", "NOT labels['x'] ENDS_WITH 'a'"),
    ("labels['x'] NOTCONTAINS 'a'", "NOT labels['x'] CONTAINS 'a'"),
    ("labels['x'] NOT ~= 'a'", "NOT labels['x'] ~= 'a'"),
    ("field['replicas'] NOT < 3", "NOT field['replicas'] < 3"),
    ("field['name'] NOT 'web'", "field['name'] != 'web'"),
    ("field['name'] NOT = 'web'", "field['name'] != 'web'"),
    ("field['name'] NOTIN ('a')", "field['name'] NOT IN ('a')"),
    ("field['name'] NOT_IN ('a')", "field['name'] NOT IN ('a')"),
    ("field['name'] NIN ('a')", "field['name'] NOT IN ('a')"),
    ("field['name'] !IN ('a')", "field['name'] NOT IN ('a')"),
    ("field['name'] startswith 'a'", "field['name'] STARTS_WITH 'a'"),
    ("field['name'] icontains 'a'", "field['name'] ~= 'a'"),
    ("field['replicas'] GTE 3", "field['replicas'] >= 3"),
    ("field['replicas'] => 3", "field['replicas'] >= 3"),
    ("name = 'web'", "field['name'] = 'web'"),
    ("'name' = 'web'", "field['name'] = 'web'"),
    ("name = web", "field['name'] = 'web'"),
    ("field['note'] = hello world", "field['note'] = 'hello world'"),
    (
        "field['note'] = hello world AND name = 'x'",
        "field['note'] = 'hello world' AND field['name'] = 'x'",
    ),
    ("field['note'] IN (a, b)", "field['note'] IN ('a', 'b')"),
    # CEL, JMESPath, jq
    ("field.name = 'a'", "field['name'] = 'a'"),
    ("fields['name'] = 'a'", "field['name'] = 'a'"),
    ("label['app'] = 'a'", "labels['app'] = 'a'"),
    ("labels.app = 'a'", "labels['app'] = 'a'"),
    ("field.labels.app = 'a'", "labels['app'] = 'a'"),
    ("startsWith(field['name'], 'a')", "field['name'] STARTS_WITH 'a'"),
    ("starts_with(name, 'a')", "field['name'] STARTS_WITH 'a'"),
    ("ends_with(labels.app, 'a')", "labels['app'] ENDS_WITH 'a'"),
    ("contains(labels['app'], 'a')", "labels['app'] CONTAINS 'a'"),
    ("field['name'].startsWith('a')", "field['name'] STARTS_WITH 'a'"),
    ("name.endsWith('a')", "field['name'] ENDS_WITH 'a'"),
    ("labels.app.contains('a')", "labels['app'] CONTAINS 'a'"),
    ("has(labels.app)", "labels['app'] EXISTS"),
    ("!has(labels.app)", "NOT labels['app'] EXISTS"),
    ("exists(field['note'])", "field['note'] EXISTS"),
    ("! field['kind'] = 'Deployment'", "NOT field['kind'] = 'Deployment'"),
    ("!(field['kind'] = 'Deployment')", "NOT (field['kind'] = 'Deployment')"),
    ("-field['kind'] = 'Deployment'", "NOT field['kind'] = 'Deployment'"),
    ("field['name'] = 'a' && field['note'] = 'b'", "field['name'] = 'a' AND field['note'] = 'b'"),
    ("field['name'] = 'a' || field['note'] = 'b'", "field['name'] = 'a' OR field['note'] = 'b'"),
    ("field['name'] == 'a' && note == 'b'", "field['name'] = 'a' AND field['note'] = 'b'"),
    # Glued words and quotes
    (
        "field['kind'] = 'Deployment'ANDfield['kind'] = 'Deployment'",
        "field['kind'] = 'Deployment' AND field['kind'] = 'Deployment'",
    ),
    (
        "field['replicas'] = 1ORfield['replicas'] = 2",
        "field['replicas'] = 1 OR field['replicas'] = 2",
    ),
    ("NOTfield['name'] = 'a'", "NOT field['name'] = 'a'"),
    ("field['name'] = 'it's'", "field['name'] = 'it''s'"),
    ("field['name'] = 'web", "field['name'] = 'web'"),
    ("field['name'] = \"web'", "field['name'] = 'web'"),
    ("field['name'] = \u2018a\u2019", "field['name'] = 'a'"),
    ("field['name'] = \u201ca b\u201d", "field['name'] = 'a b'"),
    ("field['name'] = `a`", "field['name'] = 'a'"),
    ("field[`name`] = 'a'", "field['name'] = 'a'"),
    ("`name` = 'a'", "field['name'] = 'a'"),
    (
        "field[\u2018name\u2019] = \u2018a\u2019 AND field[\u2018note\u2019] = \u2018b\u2019",
        "field['name'] = 'a' AND field['note'] = 'b'",
    ),
    ("field['name'] = \uff07a\uff07", "field['name'] = 'a'"),
    # Characters
    (
        "field['kind'] = 'Deployment'\u00a0AND field['name'] = 'a'",
        "field['kind'] = 'Deployment' AND field['name'] = 'a'",
    ),
    ("\ufefffield['kind'] = 'Deployment'", "field['kind'] = 'Deployment'"),
    ("field['kind'] = 'Deployment'\u200b", "field['kind'] = 'Deployment'"),
    ("field['kind'] = 'Deployment\u200b'", "field['kind'] = 'Deployment'"),
    ("field['kind\u00ad'] = 'Deployment'", "field['kind'] = 'Deployment'"),
    ("field['kind'] = \u202e'Deployment'", "field['kind'] = 'Deployment'"),
    ("field['replicas'] \u2265 3", "field['replicas'] >= 3"),
    ("field['replicas'] = \u22123", "field['replicas'] = -3"),
    ("field['replicas'] \uff1d 3", "field['replicas'] = 3"),
    # Names and values of the field set
    ("field['nam'] = 'a'", "field['name'] = 'a'"),
    ("field['Kind'] = 'deployment'", "field['kind'] = 'Deployment'"),
    ("field['kind'] = 'Deploymnet'", "field['kind'] = 'Deployment'"),
    ("field['createdAt'] > '2026-01-31'", "field['created_at'] > '2026-01-31T00:00:00Z'"),
    (
        "field['created_at'] > '2026-01-31 12:00:00Z'",
        "field['created_at'] > '2026-01-31T12:00:00Z'",
    ),
    ("field['created_at'] > 2026-01-31T12:00:00Z", "field['created_at'] > '2026-01-31T12:00:00Z'"),
]

# No filter of this language means the same, or several do.
LEADS_NOWHERE = [
    "field['replicas'] = 3.0",
    "field['replicas'] >== 3",
    "field['replicas'] = 3.5",
    "field['replicas'] = +3",
    "field['replicas'] = 1e3",
    "field['replicas'] = 0x10",
    "field['replicas'] = 1_000",
    "field['replicas'] < field['size_bytes']",
    "field['replicas'] < field.size_bytes",
    "field['name'] = labels['app']",
    "field['replicas'] > null",
    "field['note'] IN (null, 'a')",
    "field['note'] IS EMPTY",
    "field['name'] =~ 'web.*'",
    "field['name'] =~ 'web'",
    "field['name'] !~ 'web'",
    "field['name'] ~ '^web'",
    "field['name'] MATCHES 'web.*'",
    "field['name'] NOT REGEXP 'web'",
    "field['name'] LIKE 'w%b'",
    "field['name'] LIKE 'web_'",
    "field['name'] LIKE '%'",
    "field['name'] LIKE '100\\%'",
    "field['name'] ILIKE 'web%'",
    "field['name'] GLOB 'web*'",
    "field['name'] = web*",
    "field['name'] = %web%",
    "field['name'].matches('web.*')",
    "field['name'].lower() = 'web'",
    "lower(field['name']) = 'web'",
    "size(labels) > 3",
    "field['created_at'] > now()",
    "field['name'] : 'web'",
    "field['name'] istartswith 'web'",
    "field['name'] ? 'web'",
    "field['name'] = 'a', field['note'] = 'b'",
    "field['name'] = 'a'; field['note'] = 'b'",
    "field['name'] = 'a' field['note'] = 'b'",
    "field['name'] = 'a' || 'b'",
    "field['name'] = 'a' OR 'b'",
    "field['name'] = 'a\\'",
    'field[\'name\'] = \'a AND field["kind"] = "Deployment"',
    "field['name'] = 'a AND field['kind'] = 'Deployment'",
    "field['name'] = 'a' ORDER BY name",
    "field['name'] = 'C:\\'",
    "field['name'] = 'a''",
    "(field['name'] = 'a'",
    "field['name'] = 'a')",
    "(field['name']) = 'a'",
    "field['name'] = ('a')",
    "field['name'] IN 'a'",
    "field['name'] IN ['a', 'b']",
    "field['name'] = ",
    "field['name']",
    "WHERE name = 'a'",
    "field['updated_at'] > '2026-01-31T12:00:00Z'",
    "field['unlocked'] = true",
    "field['health_status'] = 'UNHEALTHY'",
    "field['kind'] = 'Set'",
    "field['kind'] = null",
    "field['name'] = $1",
    "field['name'] = :name",
]


@pytest.mark.parametrize(("text", "intended"), LEADS_TO)
def test_advice_leads_to_the_intended_filter(text, intended):
    with pytest.raises(FilterError):
        compile_filter(RowFilters, text)
    found = outcome(text)
    assert found is not None
    assert found.deconstruct() == compile_filter(RowFilters, intended).deconstruct()


@pytest.mark.parametrize("text", LEADS_NOWHERE)
def test_advice_leads_to_no_filter_of_another_meaning(text):
    assert outcome(text) is None
