"""The rule that decides which marked values are hidden everywhere, tested alone."""

from __future__ import annotations

import base64
import random
import string
import time
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from states.document.public_words import has_public_form, is_public
from states.document.secret_rule import Evidence, Reach, evidence, passwords_in, reach
from states.document.value_names import Name, name_of_member, read_name
from tests.states.generated import ALPHABETS, generated

NOTHING, EQUAL, CONTAINING = Reach.NOTHING, Reach.EQUAL, Reach.CONTAINING

PUBLIC = [
    "eu-west-1", "eu-west-1a", "us-gov-west-1", "ap-southeast-2", "europe-west1", "europe-west1-b",
    "us-central1-f", "westeurope", "West Europe", "East US 2", "eu-frankfurt-1", "use1-az4",
    "cn-hangzhou", "5432", "3306", "8080", "443", "27017", "6379", "admin", "postgres",
    "administrator", "root", "Production", "true", "false", "default", "10.0.0.0/16", "127.0.0.1",
    "arn:aws:ec2:eu-west-1:111122223333:vpc/vpc-0shop", "arn:aws-cn:s3:::shop",
    "-----BEGIN RSA PRIVATE KEY-----", "-----END PRIVATE KEY-----", "localhost", "verify-full",
]  # fmt: skip
#: Values of a composite that reveal nothing, although they are no vocabulary.
ORDINARY = [
    "db.shop.example", "https://db.shop.example:5432/", "*.shop.example", "ann@shop.example",
    "vpc-0shop", "vpc-0a1b2c3d4e5f67890", "subnet-0123abcd", "111122223333", "payments", "shop-db",
    "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs", "db.r6g.2xlarge", "n2-standard-4",
    "Standard_D4s_v3", "1.11.4", "v1beta1", "2024-01-01T00:00:00Z", "2001:db8::1", "ip-10-0-1-15",
    "projects/shop/locations/europe-west1/keyRings/main", "db-r6g-2xlarge-az1", "hunter2", "fsn1",
    "https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com", "", "abc",
    "aB3dE5fG7.hJ9@shop.example", "see arn:aws:iam::111122223333:role/aB3dE5fG7hJ9",
]  # fmt: skip
SECRETS = [
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "kP#9x!Zq@7Lm", "9f86d081884c7d659a2feaa0c55ad015",
    "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "postgres://app:pw@db.shop.example/shop",
    "Server=db;User Id=app;Password=hunter2;", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    "https://hooks.example/services/T01ABCDEF/B01GHIJKL/aBcD3fGh1jKlMn0pQrStUvWx",
    "correct-horse-battery", "correct horse battery staple", "qzxkvwjhbnmrtplkcvdfgs",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r",
]  # fmt: skip


@pytest.mark.parametrize("text", PUBLIC)
def test_public_vocabulary_is_not_masked(text: str) -> None:
    for name in Name:
        for is_member in (False, True):
            assert reach(text, name, is_member=is_member) is NOTHING


def test_public_vocabulary_has_at_most_300_characters() -> None:
    arn = "arn:aws:s3:::" + "a" * 287
    address = "https://" + ("a" * 57 + ".") * 5 + "io"

    assert is_public(arn)
    assert not is_public(arn + "a")
    assert has_public_form(address)
    assert not has_public_form(address + "s")


@pytest.mark.parametrize("text", ORDINARY)
@pytest.mark.parametrize("name", [Name.NEUTRAL, Name.PUBLIC, Name.IDENTIFIER])
def test_ordinary_member_is_not_masked(text: str, name: Name) -> None:
    assert reach(text, name, is_member=True) is NOTHING


@pytest.mark.parametrize("text", SECRETS)
def test_member_in_the_form_of_a_secret_is_masked(text: str) -> None:
    assert reach(text, Name.NEUTRAL, is_member=True) is CONTAINING


@given(generated())
def test_generated_member_of_twenty_characters_is_masked(secret: str) -> None:
    for name in (Name.NEUTRAL, Name.SECRET):
        assert reach(secret, name, is_member=True) is CONTAINING


@pytest.mark.slow
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_almost_all_generated_lines_are_masked(alphabet: str) -> None:
    drawn = random.Random(1)
    lines = ["".join(drawn.choices(alphabet, k=drawn.randint(20, 64))) for _ in range(5000)]
    reaches = Counter(reach(line, Name.NEUTRAL, is_member=True, is_line=True) for line in lines)
    assert reaches[CONTAINING] >= 4990


@given(generated(string.ascii_letters + string.digits, least=32))
def test_a_generated_member_under_a_public_name(secret: str) -> None:
    assert reach(secret, Name.PUBLIC, is_member=True) is CONTAINING


@pytest.mark.parametrize(
    ("text", "named", "marked"),
    [
        ("abc", NOTHING, NOTHING),
        ("abcd", EQUAL, EQUAL),
        ("hunter2", CONTAINING, EQUAL),
        ("hunter", EQUAL, EQUAL),
        ("qwertyu", EQUAL, EQUAL),
        ("qwerty1", CONTAINING, EQUAL),
        ("qwert12", CONTAINING, EQUAL),
        ("9-3-4-7", EQUAL, EQUAL),
        ("hunter22", CONTAINING, CONTAINING),
        ("correct.horse", CONTAINING, CONTAINING),
        ("aaaaaaaaaaaa", EQUAL, EQUAL),
        # The entropy of the first is 15.2 bits, and of the second 16 bits.
        ("aaabbccd", EQUAL, EQUAL),
        ("aabbccdd", CONTAINING, CONTAINING),
        ("1234", EQUAL, NOTHING),
        ("65432", EQUAL, NOTHING),
        ("654321", EQUAL, EQUAL),
        ("8392017", EQUAL, EQUAL),
        ("83920174", CONTAINING, EQUAL),
        ("111122223333", CONTAINING, EQUAL),
        ("db.shop.example", CONTAINING, CONTAINING),
    ],
)
def test_value_with_a_secret_name_or_its_own_mark_is_masked(
    text: str, named: Reach, marked: Reach
) -> None:
    assert reach(text, Name.SECRET, is_member=True) is named
    assert reach(text, Name.SECRETS, is_member=False) is named
    assert reach(text, Name.NEUTRAL, is_member=False) is marked


@pytest.mark.parametrize(
    ("name", "of_member", "of_value"),
    [
        (Name.SECRET, Evidence.NAMED, Evidence.NAMED),
        (Name.SECRETS, Evidence.NAMED, Evidence.NAMED),
        (Name.NEUTRAL, Evidence.MEMBER, Evidence.MARKED),
        (Name.PUBLIC, Evidence.MEMBER, Evidence.MEMBER),
        (Name.IDENTIFIER, Evidence.MEMBER, Evidence.MEMBER),
    ],
)
def test_evidence_of_a_name(name: Name, of_member: Evidence, of_value: Evidence) -> None:
    assert evidence(name, is_member=True) is of_member
    assert evidence(name, is_member=False) is of_value


@pytest.mark.parametrize(
    ("varied", "too_uniform"),
    [
        # At least 8 characters, without the characters "-_./:,=".
        ("abcdeF2g", "abcdF2g_"),
        # At least 3 changes between kinds of characters, and one per 5 characters on average.
        ("abcdeF2g_hi", "abcdeF2_gh"),
        ("abcdeF2g_hijklmn", "abcdeF2g_hijklmno"),
        # Or a run of at least 12 characters, with a change in at least 16 characters.
        ("abcdefghijkL_mnop", "abcdefghijK_lmnop"),
        ("abcdefghijkL_mnop", "abcdefghijkL_mno"),
        ("abcdefghijkL_mnop", "abcdefghijkl_mnop"),
        # Two changes are necessary in fewer than 16 characters.
        ("abcdeFghijkL", "abcdefghijkL"),
        # Such a run also needs an entropy of at least 3 bits per character.
        ("abcdefgHabcdefgH", "abcdefeHabcdefeH"),
    ],
)
def test_generated_member_changes_between_kinds_of_characters(
    varied: str, too_uniform: str
) -> None:
    for name in (Name.NEUTRAL, Name.PUBLIC):
        assert reach(varied, name, is_member=True) is CONTAINING
        assert reach(too_uniform, name, is_member=True) is NOTHING


@pytest.mark.parametrize(
    ("phrase", "no_phrase"),
    [
        # At least 20 characters.
        ("correct-horse-batter", "correct-horse-batte"),
        # At least 45 bits of entropy: 45.2 and 44.9.
        ("aaaaabbbbbccccddddee", "aaaaabbbbbcccccdddee"),
        ("correct horse battery", "correct/horse/battery"),
    ],
)
def test_phrase_is_long_and_varied(phrase: str, no_phrase: str) -> None:
    assert reach(phrase, Name.NEUTRAL, is_member=True) is CONTAINING
    assert reach(phrase, Name.PUBLIC, is_member=True) is NOTHING
    assert reach(no_phrase, Name.NEUTRAL, is_member=True) is NOTHING


def test_member_of_more_than_4096_characters_is_masked() -> None:
    text = "shop/" * 820

    assert reach(text[:4096], Name.PUBLIC, is_member=True) is NOTHING
    assert reach(text[:4097], Name.PUBLIC, is_member=True) is CONTAINING


@pytest.mark.parametrize(
    ("text", "passwords"),
    [
        ("postgres://app:hunter2@db.shop.example/shop", {"hunter2"}),
        ("postgres://app:s%40fe@db/shop?sslmode=require", {"s%40fe", "s@fe"}),
        ("host=db password='hunter2' user=app", {"hunter2"}),
        ('Server=db;Pwd = "hunter2";AccountKey=a%2Bb', {"hunter2", "a%2Bb", "a+b"}),
        ("redis://:first@db,redis://:second@db?token=third", {"first", "second", "third"}),
        ("https://db.shop.example:5432/?user=app", set()),
    ],
)
def test_passwords_of_a_connection_string(text: str, passwords: set[str]) -> None:
    assert passwords_in(text) == passwords


def test_the_mark_of_a_value_with_a_public_name() -> None:
    """An output ``region`` or ``vpc_id`` that is sensitive hides itself."""
    for text in ("mars-north-1", "payments", "15432", "db.shop.example"):
        assert reach(text, Name.PUBLIC, is_member=False) is NOTHING
    assert reach("kP#9x!Zq@7Lm", Name.PUBLIC, is_member=False) is CONTAINING


def test_uuid_is_public_only_as_an_identifier() -> None:
    text = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"

    assert reach(text, Name.IDENTIFIER, is_member=True) is NOTHING
    assert reach(text, Name.PUBLIC, is_member=True) is CONTAINING


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("password", Name.SECRET), ("db_password", Name.SECRET), ("masterPassword", Name.SECRET),
        ("POSTGRES_PASSWORD", Name.SECRET), ("password1", Name.SECRET), ("passwords", Name.SECRET),
        ("api_key", Name.SECRET), ("apiKey", Name.SECRET), ("secret_access_key", Name.SECRET),
        ("primary_connection_string", Name.SECRET), ("tls.key", Name.SECRET),
        ("private_key_pem", Name.SECRET), ("token", Name.SECRET), ("kube_config_raw", Name.SECRET),
        ("secret", Name.SECRETS), ("client_secret", Name.SECRETS), ("db_credentials", Name.SECRETS),
        ("host", Name.PUBLIC), ("db_port", Name.PUBLIC), ("region", Name.PUBLIC),
        ("password_length", Name.PUBLIC), ("token_url", Name.PUBLIC), ("key_name", Name.PUBLIC),
        ("secret_name", Name.PUBLIC), ("user name", Name.PUBLIC), ("vpc_ids", Name.IDENTIFIER),
        ("client_id", Name.IDENTIFIER), ("accessKeyId", Name.IDENTIFIER),
        ("secret_id", Name.PUBLIC),
        ("connection", Name.NEUTRAL), ("primary", Name.NEUTRAL), ("key", Name.NEUTRAL),
        ("", Name.NEUTRAL), ("密码", Name.NEUTRAL), ("bypass", Name.NEUTRAL),
        # Numbers after the last word are ignored.
        ("password_1", Name.SECRET), ("host_2", Name.PUBLIC), ("subnet_id_1_2", Name.IDENTIFIER),
        ("2_host", Name.PUBLIC), ("1_2", Name.NEUTRAL), ("7", Name.NEUTRAL),
        # The first 200 characters count.
        ("x" * 196 + "_pass", Name.NEUTRAL), ("x" * 195 + "_pass", Name.SECRET),
    ],
)  # fmt: skip
def test_names_are_classified(name: str, expected: Name) -> None:
    assert read_name(name) is expected


def test_the_name_around_a_member() -> None:
    assert name_of_member("primary", Name.SECRET) is Name.SECRET
    assert name_of_member("port", Name.SECRET) is Name.PUBLIC
    # ``credentials`` is a usual name of an object that has a host, too.
    assert name_of_member("primary", Name.SECRETS) is Name.NEUTRAL


@pytest.mark.parametrize(
    "text",
    ["a" * 2**20, "aB" * 2**19, "a1" * 2**19, "aaa." * 2**18, ":" * 2**20, "://a:" * 2**18,
     "token " * 2**17, "-" * 2**20, "a@" * 2**19, "a" * 250 + "!", "A" * 299, "a-" * 140,
     "1." * 149],
    ids=range(13),
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()
    for name in (Name.NEUTRAL, Name.PUBLIC, Name.SECRET):
        reach(text, name, is_member=True)

    assert time.process_time() - started < 3


@given(st.text(max_size=400))
def test_any_text_has_an_answer(text: str) -> None:
    assert is_public(text) in {True, False}
    for name in Name:
        assert reach(text, name, is_member=True) in Reach
    assert read_name(text) in Name


def test_a_long_name_is_not_kept() -> None:
    """A document may have members with names of megabytes."""
    tracemalloc.start()
    try:
        for number in range(20):
            assert read_name(f"password{number}" + "/" * 1_000_000) is Name.SECRET
        kept, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


def test_lines_of_a_marked_key_are_masked() -> None:
    key = base64.b64encode(bytes(range(48))).decode()

    for line in (key, "LAFOZOQFOJZMTDGNSPA2", "lafozoqfojzmtdgnspaz"):
        assert reach(line, Name.NEUTRAL, is_member=True, is_line=True) is CONTAINING
    for line in (
        "apt-get install -y nginx curl",
        "set -euo pipefail",
        "  region: eu-west-1",
        "GettingStartedWithTerraform",
    ):
        assert reach(line, Name.NEUTRAL, is_member=True, is_line=True) is NOTHING
