import pytest

from filterlang.errors import FilterError
from filterlang.parser import parse
from filterlang.spelling import closest

TERM = "expected a term such as field['name'], NOT or '('"
NAME = "expected a quoted name"
OPERATOR = "expected an operator"
VALUE = "expected a quoted value, an integer, true or false"
PATTERNS = (
    "patterns are not available; use =, CONTAINS, STARTS_WITH or ENDS_WITH with plain text, "
    "or ~= to ignore case"
)
JOIN = "expected AND, OR, ')' or the end"


@pytest.mark.parametrize(
    ("text", "position", "message", "suggestion"),
    [
        # A term.
        ("namespace = 'x'", 0, TERM, "write field['namespace']"),
        ("  name = 'x'", 2, TERM, "write field['name']"),
        ("labels.app/name = 'x'", 0, TERM, "write labels['app/name']"),
        ("Field['name'] = 'x'", 0, TERM, "write field['name']"),
        ("LABELS[\"app\"] = 'x'", 0, TERM, "write labels['app']"),
        ("field [ 'name' ] = 'x'", 0, TERM, "write field['name']"),
        ("NOTfield['a'] = 'x'", 0, TERM, "put a space after NOT"),
        ("NOT", 3, TERM, ""),
        ("()", 1, TERM, ""),
        ("(", 1, TERM, ""),
        ("= 'x'", 0, TERM, ""),
        ("AND field['a']=1", 0, TERM, ""),
        ("field['a']=1 AND", 16, TERM, ""),
        ("field['a']=1 AND OR field['a']=1", 17, TERM, ""),
        ("field['a']=1 AND b=1", 17, TERM, "write field['b']"),
        # Its name.
        ("field[name] = 'x'", 6, NAME, "quote the name: 'name'"),
        ("field[] = 'x'", 6, NAME, ""),
        ("field[", 6, NAME, ""),
        ("field['name = 1", 6, "unterminated quoted name", "close it with '"),
        ('labels["a', 7, "unterminated quoted name", 'close it with "'),
        ("field['name' = 'x'", 13, "expected ]", ""),
        # Its operator.
        ("field['a'] == 'x'", 11, OPERATOR, "did you mean = ?"),
        ("field['a'] <> 'x'", 11, OPERATOR, "did you mean != ?"),
        ("field['a'] =~ 'x'", 11, OPERATOR, PATTERNS),
        ("field['a'] => 1", 11, OPERATOR, "did you mean >= ?"),
        ("field['a']:'x'", 10, OPERATOR, "use = for the whole text, or CONTAINS for a part of it"),
        (
            "field['a'] like 'x'",
            11,
            OPERATOR,
            "write = 'x', because % and _ are ordinary characters",
        ),
        ("field['a'] startswith 'x'", 11, OPERATOR, "did you mean STARTS_WITH ?"),
        ("field['a'] contain 'x'", 11, OPERATOR, "did you mean CONTAINS ?"),
        ("field['a'] is 'x'", 11, OPERATOR, "did you mean = ?"),
        ("field['a'] not 'x'", 11, OPERATOR, "did you mean != ?"),
        ("field['a'] <<< 'x'", 11, OPERATOR, ""),
        ("field['a'] 'x'", 11, OPERATOR, ""),
        ("field['a']", 10, OPERATOR, ""),
        # Its values.
        ("field['a'] = x", 13, VALUE, "quote the value: 'x'"),
        ("field['a'] = 2026-01-31T00:00:00Z", 13, VALUE, "quote the value: '2026-01-31T00:00:00Z'"),
        ("field['a'] = 0198f0aa-1", 13, VALUE, "quote the value: '0198f0aa-1'"),
        ("field['a'] = ('x')", 13, VALUE, ""),
        ("field['a'] =", 12, VALUE, ""),
        ("field['a'] = 'x", 13, "unterminated quoted value", "close it with '"),
        ('field["a"] = "x\'', 13, "unterminated quoted value", "write \" at the end in place of '"),
        ("field['a'] = 'x\\'", 13, "unterminated quoted value", "a value in ' cannot end with \\"),
        ("field['a'] = 'x''", 13, "unterminated quoted value", ""),
        ("field['a'] IN 'x'", 14, "expected '('", ""),
        ("field['a'] IN ()", 15, VALUE, ""),
        ("field['a'] IN ('x',)", 19, VALUE, ""),
        ("field['a'] IN ('x' 'y')", 19, "expected ',' or ')'", ""),
        ("field['a'] IN ('x'", 18, "expected ',' or ')'", ""),
        ("field['a'] BETWEEN 1, 2", 20, "expected AND", ""),
        ("field['a'] BETWEEN 1", 20, "expected AND", ""),
        # Text after a complete term.
        ("field['a']=1 field['b']=1", 13, JOIN, "put AND or OR between two terms"),
        ("field['a']=1 && field['b']=1", 13, JOIN, "did you mean AND ?"),
        ("field['a']=1, field['b']=1", 12, JOIN, "put AND or OR between two terms, not ,"),
        ("field['a']=1 || field['b']=1", 13, JOIN, "did you mean OR ?"),
        ("field['a']=1 ORfield['b']=1", 13, JOIN, "put a space after OR"),
        ("field['a']='it's'", 15, JOIN, "write a quote inside a value twice: ''"),
    ],
)
def test_error_has_position_message_and_suggestion(text, position, message, suggestion):
    with pytest.raises(FilterError) as caught:
        parse(text)
    error = caught.value
    assert (error.code, error.position, error.message, error.suggestion) == (
        "syntax",
        position,
        message,
        suggestion,
    )


def test_an_error_reads_as_message_and_suggestion():
    with pytest.raises(FilterError) as caught:
        parse("field['a'] == 1")
    assert str(caught.value) == "expected an operator; did you mean = ?"


@pytest.mark.parametrize(
    ("word", "choice"),
    [
        ("deployment", "Deployment"),
        ("Deploy", "Deployment"),
        ("Deplyoment", "Deployment"),
        ("x", ""),
        ("De", ""),
        ("undeployment", ""),
        ("NOT_Deployment", ""),
        ("Deployment" * 10, ""),
        ("status", ""),  # the beginning of two
        ("createdAt", "created_at"),
        ("updated_at", ""),
        ("status_name", ""),
    ],
)
def test_closest_name_is_suggested(word, choice):
    assert closest(word, ["Deployment", "status_text", "status_tests", "created_at"]) == choice
