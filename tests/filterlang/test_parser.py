import pytest

from filterlang.errors import Code, FilterError
from filterlang.nodes import And, Not, Or, Term, Value
from filterlang.parser import parse


def names(node):
    """The shape of a tree: names of terms, and lists headed by the connective."""
    match node:
        case Term():
            return node.name
        case Not(child):
            return ["not", names(child)]
        case And(children):
            return ["and", *map(names, children)]
        case Or(children):
            return ["or", *map(names, children)]


def refused(text):
    with pytest.raises(FilterError) as caught:
        parse(text)
    error = caught.value
    return error.code, error.position, str(error)


def value_of(text):
    return parse(f"field['a'] = {text}").values[0]


@pytest.mark.parametrize("text", ["", " ", "\t\r\n "])
def test_blank_is_no_filter(text):
    assert parse(text) is None


def test_term_records_text_and_positions():
    assert parse(" field['kind'] != 'Deployment'") == Term(
        "kind", 7, "!=", 15, (Value("Deployment", quoted=True, position=18),)
    )


@pytest.mark.parametrize(
    ("operands", "operator", "values"),
    [
        ("= 1", "=", ["1"]),
        ("!=1", "!=", ["1"]),
        ("< 1", "<", ["1"]),
        ("<=1", "<=", ["1"]),
        ("> 1", ">", ["1"]),
        (">=1", ">=", ["1"]),
        ("~='a'", "~=", ["a"]),
        ("CONTAINS 'a'", "CONTAINS", ["a"]),
        ("starts_with'a'", "STARTS_WITH", ["a"]),
        ("Ends_With 'a'", "ENDS_WITH", ["a"]),
        ("IN ('a')", "IN", ["a"]),
        ("in('a' ,1,\ttrue)", "IN", ["a", "1", "true"]),
        ("not\r\n in('a')", "NOT IN", ["a"]),
        ("BETWEEN 1 AND 2", "BETWEEN", ["1", "2"]),
        ("between-1and2", "BETWEEN", ["-1", "2"]),
        ("EXISTS", "EXISTS", []),
        ("is null", "IS NULL", []),
        ("IS\tNot  NULL", "IS NOT NULL", []),
    ],
)
def test_operators_are_parsed(operands, operator, values):
    term = parse(f"field['a']{operands}")
    assert (term.operator, [value.text for value in term.values]) == (operator, values)


@pytest.mark.parametrize(
    ("written", "text", "quoted"),
    [
        ("'x'", "x", True),
        ('"x"', "x", True),
        ("''", "", True),
        ("'it''s'", "it's", True),
        (r"'it\'s'", "it's", True),
        ('"say ""hi"""', 'say "hi"', True),
        (r'"say \"hi\""', 'say "hi"', True),
        ("'\"'", '"', True),
        ("\"''\"", "''", True),
        (r"'C:\dir\\n'", r"C:\dir\\n", True),
        (r"'\\\' '", r"\\' ", True),
        (r'"\'"', r"\'", True),
        ("'%_*?[x]'", "%_*?[x]", True),
        ("'é😀\n'", "é😀\n", True),
        ("0", "0", False),
        ("-12", "-12", False),
        ("TRUE", "TRUE", False),
        ("false", "false", False),
    ],
)
def test_values_are_parsed(written, text, quoted):
    assert value_of(written) == Value(text, quoted, 13)


@pytest.mark.parametrize("text", ["labels['a.b/c']='x'", "field[ \"labels.a.b/c\" ] = 'x'"])
def test_labels_have_two_spellings(text):
    assert parse(text).name == "labels.a.b/c"


A, B, C, D = (f"field['{name}']=1" for name in "abcd")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (f"{A} AND {B} and {C}", ["and", "a", "b", "c"]),
        (f"{A} OR {B} AND {C} OR {D}", ["or", "a", ["and", "b", "c"], "d"]),
        (f"({A} OR {B}) AND {C}", ["and", ["or", "a", "b"], "c"]),
        (f"NOT {A} AND {B}", ["and", ["not", "a"], "b"]),
        (f"NOT({A} AND {B})OR {C}", ["or", ["not", ["and", "a", "b"]], "c"]),
        (f"NOT NOT {A}", "a"),
        (f"not not NOT {A}", ["not", "a"]),
        (f"NOT (NOT ({A}))", ["not", ["not", "a"]]),
        (f"((({A})))", "a"),
        (f"NOT ( ( {A} ) OR {B} ) ", ["not", ["or", "a", "b"]]),
        (f"{A} AND ({B} OR ({C} AND {D}))", ["and", "a", ["or", "b", ["and", "c", "d"]]]),
    ],
)
def test_not_binds_tighter_than_and_and_than_or(text, tree):
    assert names(parse(text)) == tree


def test_keywords_may_touch_other_characters():
    text = "NOT(field['a']IN('x')AND field['b']BETWEEN 1AND 2OR field['c']='x'AND(field['d']=1))"
    assert names(parse(text)) == ["not", ["or", ["and", "a", "b"], ["and", "c", "d"]]]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("NOTfield['a']=1", 0),
        ("field['a']=1 ANDfield['b']=1", 13),
        ("field['a']CONTAINSx", 10),
        ("field['a']=trueAND field['b']=1", 11),
        ("field ['a']=1", 0),
        ("FIELD['a']=1", 0),
        ("Labels['a']=1", 0),
        ("field['a']=+1", 11),
        ("field['a']=1.5", 11),
        ("field['a']=- 1", 11),
        ("field['a']=\u0661", 11),
    ],
)
def test_syntax_errors_are_reported(text, position):
    assert refused(text)[:2] == (Code.SYNTAX, position)


@pytest.mark.parametrize(
    ("text", "position", "name"),
    [
        ("field['a'] eXi\u017fts", 14, "U+017F (LATIN SMALL LETTER LONG S)"),
        ("field['a']=1\xa0", 12, "U+00A0 (NO-BREAK SPACE)"),
        ("field['a']=1\f", 12, "U+000C (a control character)"),
        ("field['a']='x'\u200b", 14, "U+200B (ZERO WIDTH SPACE)"),
        ("\ufefffield['a']='x'", 0, "U+FEFF (ZERO WIDTH NO-BREAK SPACE)"),
        ("field['a']\u2009= 'x'", 10, "U+2009 (THIN SPACE)"),
        ("field\u00ad['a'] = 'x'", 5, "U+00AD (SOFT HYPHEN)"),
        ("field['a'] = \u202e'x'", 13, "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("field['a'] = 'x' \u2066OR field['b'] = 'y'", 17, "U+2066 (LEFT-TO-RIGHT ISOLATE)"),
        ("field['a'] = 'x'\u2028", 16, "U+2028 (LINE SEPARATOR)"),
        ("field['a'] = 'x'\u3000", 16, "U+3000 (IDEOGRAPHIC SPACE)"),
        ("field['a'] = \u3164'x'", 13, "U+3164 (HANGUL FILLER)"),
        ("field['a'] = \ufe0f'x'", 13, "U+FE0F (VARIATION SELECTOR-16)"),
        ("field['a'] = \uff07x\uff07", 13, "U+FF07 (FULLWIDTH APOSTROPHE)"),
        ("field['a'] \uff1d 'x'", 11, "U+FF1D (FULLWIDTH EQUALS SIGN)"),
        ("field['a'] = \u20135", 13, "U+2013 (EN DASH)"),
        ("field['a'] = `x`", 13, "U+0060 (GRAVE ACCENT)"),
    ],
)
def test_a_character_that_is_not_of_the_language_is_named(text, position, name):
    assert refused(text)[:2] == ("character", position)
    assert refused(text)[2].startswith(f"{name} is not allowed outside quotes; ")


@pytest.mark.parametrize("character", ["\xa0", "\u200b", "\u202e", "\u2018", "\uff1d", "`"])
def test_any_character_may_be_in_quotes(character):
    assert value_of(f"'{character}'").text == character


def test_longest_text_is_parsed():
    assert parse(f"field['a']='{'x' * 1011}'").values[0].text == "x" * 1011
    assert refused(f"field['a']='{'x' * 1012}'") == (
        Code.TOO_LONG,
        1024,
        "expected at most 1024 characters, got 1025",
    )


def test_length_counts_characters_not_bytes():
    assert parse(f"field['a']='{'😀' * 1011}'").values[0].text == "😀" * 1011


def test_terms_are_not_limited():
    text = " OR ".join([A] * 60)
    assert names(parse(text)) == ["or", *["a"] * 60]


def test_deepest_parentheses_are_parsed():
    assert names(parse(f"{'(' * 16}{A}{')' * 16}")) == "a"
    assert refused(f"{'(' * 17}{A}{')' * 17}") == (
        Code.TOO_DEEP,
        16,
        "expected at most 16 nested parentheses",
    )


def test_depth_is_of_nesting_and_not_of_number():
    assert names(parse(" AND ".join([f"({A})"] * 50))) == ["and", *["a"] * 50]


@pytest.mark.parametrize(
    ("character", "what"),
    [("\0", "NUL"), ("\ud800", "a lone surrogate")],
)
def test_invalid_characters_are_reported(character, what):
    text = f"field['a'] = 'x{character}'"
    assert refused(text) == (Code.CHARACTER, 15, f"{what} is not allowed in a filter")


@pytest.mark.parametrize(
    ("text", "position"), [(f"({A}", 0), (f"{A} AND (({B})", 17), (f"NOT ({A} OR ({B}", 21)]
)
def test_unclosed_parenthesis_is_reported(text, position):
    assert refused(text) == (Code.SYNTAX, position, "'(' is never closed")


@pytest.mark.parametrize(("text", "position"), [(f"{A})", 12), (f"({A}) ) OR {B}", 15)])
def test_unmatched_closing_parenthesis_is_reported(text, position):
    assert refused(text) == (Code.SYNTAX, position, "')' has no matching '('")
