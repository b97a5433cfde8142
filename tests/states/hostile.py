"""Documents of about a given size that are expensive to process."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable

_MARKED = '"sensitive_attributes":[[{"type":"get_attr","value":"s"}]]'


def of_instances(instances: str, *, outputs: str = "{}") -> bytes:
    return (
        '{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"l","outputs":'
        + outputs
        + ","
        '"resources":[{"mode":"managed","type":"t","name":"n","provider":"p","instances":['
        + instances
        + "]}]}"
    ).encode()


def of(attributes: str, marked: str = _MARKED) -> bytes:
    """Return a state of one object whose attribute ``s`` is marked as sensitive."""
    return of_instances(f'{{"schema_version":0,"attributes":{attributes},{marked}}}')


def beside_a_secret(value: str) -> bytes:
    return of(f'{{"s":"secret1","x":{value}}}')


def repeated(text: str, size: int) -> str:
    return text * (size // len(text))


def items(text: str, size: int) -> str:
    return f"[{repeated(text + ',', size)[:-1]}]"


def words(number: int, length: int = 12) -> list[str]:
    choose = random.Random(1).choices
    return ["".join(choose(string.ascii_letters, k=length)) for _ in range(number)]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


DOCUMENTS: dict[str, Callable[[int], bytes]] = {
    "empty instances": lambda n: of_instances(repeated("{},", n)[:-1]),
    "empty maps": lambda n: beside_a_secret(items("{}", n)),
    "empty lists": lambda n: beside_a_secret(items("[]", n)),
    "zeros": lambda n: beside_a_secret(items("0", n)),
    "fractions": lambda n: beside_a_secret(items("0.1", n)),
    "small maps": lambda n: beside_a_secret(items('{"a":"b"}', n)),
    "short texts": lambda n: beside_a_secret(_json(words(n // 13, 10))),
    "one text": lambda n: beside_a_secret(f'"{repeated("aaaaaaaaa ", n)}"'),
    "one wide text": lambda n: beside_a_secret(f'"\U0001f600{repeated("aaaaaaaaa ", n)}"'),
    "escapes": lambda n: beside_a_secret(f'"{repeated(chr(92) + "u0061", n)}"'),
    "escaped escapes": lambda n: beside_a_secret(f'"{repeated(chr(92) * 2 + "u0061", n)}"'),
    "percent": lambda n: beside_a_secret(f'"{repeated("%41", n)}"'),
    "percent of percent": lambda n: beside_a_secret(f'"%{repeated("25", n)}"'),
    "backslashes": lambda n: beside_a_secret(f'"{repeated(chr(92) * 2, n)}"'),
    "a long secret": lambda n: of(f'{{"s":"{"a" * (n // 2)}b","x":"{"a" * (n // 2)}"}}'),
    "a long secret, often": lambda n: of(
        f'{{"s":"{"a" * (n // 10)}b","x":{_json(["a" * (n // 20)] * 18)}}}'
    ),
    "a secret of lines": lambda n: of(_json({"s": "\n".join(words(n // 14)), "x": "b"})),
    "many secrets": lambda n: of(_json({"s": words(n // 15), "x": "b"})),
    "many secrets and texts": lambda n: of(
        _json({"s": words(n // 600), "x": [" ".join(words(40))] * (n // 600)})
    ),
    "secrets of one beginning": lambda n: of(
        _json(
            {
                "s": [f"password-{i}-password" for i in range(n // 200)],
                "x": [f"password-{i}-passwork " * 5 for i in range(n // 200)],
            }
        )
    ),
    "deep lists": lambda n: beside_a_secret(items("[" * 300 + "]" * 300, n)),
    "a deep secret": lambda n: of(f'{{"s":{"[" * 200 + items("12345", n) + "]" * 200},"x":1}}'),
    "deep secrets": lambda n: of(f'{{"s":{items("[" * 100 + "12345" + "]" * 100, n)},"x":1}}'),
    "types in types": lambda n: beside_a_secret(
        items('{"type":"dynamic","value":' * 50 + "1" + "}" * 50, n)
    ),
    "empty paths": lambda n: of('{"s":"x"}', f'"sensitive_attributes":{items("[]", n)}'),
    "many paths": lambda n: of('{"s":"x"}', f'"sensitive_attributes":{items(_MARKED[24:-1], n)}'),
    "a long path": lambda n: of(
        '{"s":"x"}', f'"sensitive_attributes":[{items(_MARKED[25:-2], n)}]'
    ),
    "digits": lambda n: of(f'{{"s":0.{"1" * (n // 2)},"x":1.{"1" * (n // 2)}}}'),
    "long integers": lambda n: beside_a_secret(items("1" * 4000, n)),
    "exponents": lambda n: beside_a_secret(items("1e999999999999999", n)),
    "keys": lambda n: of(_json({"s": "secret1"} | dict.fromkeys(words(n // 17), 1))),
    "one key": lambda n: of(f'{{"s":"secret1",{repeated(_json("a") + ":1,", n)[:-1]}}}'),
    "a long key": lambda n: of(f'{{"s":"secret1","{"k" * (n // 2)}":{items("0", n // 2)}}}'),
    "a long key of few": lambda n: of(f'{{"s":"secret1","{"k" * (n // 2)}":{items("0", 2000)}}}'),
    "JSON in a text": lambda n: beside_a_secret(_json(items("[]", n))),
    "a secret of JSON": lambda n: of(_json({"s": _json(words(n // 20)), "x": 1})),
    "a long module": lambda n: of_instances(repeated('{"schema_version":0},', n // 2)[:-1]).replace(
        b'"mode"', b'"module":"%b","mode"' % (b"m" * (n // 2)), 1
    ),
    "dependencies": lambda n: of('{"s":"x"}', f'{_MARKED},"dependencies":{items(_json("a"), n)}'),
    "outputs": lambda n: of_instances(
        "", outputs=f"{{{','.join(f'{_json(w)}:{{}}' for w in words(n // 14, 8))}}}"
    ),
    "a long name at the top": lambda n: b'{"version":4,"serial":1,"%b":1}' % (b"n" * n),
    "many names at the top": lambda n: (
        f'{{"version":4,"serial":1,{",".join(f"{_json(w)}:0" for w in words(n // 12, 8))}}}'
    ).encode(),
    "brackets": lambda n: b'{"version":4,"serial":1,"a":' + items("[]", n).encode() + b"}",
}


def changed(document: bytes) -> bytes:
    """Return the document with as many differences as it has values."""
    for old, new in ((b"secret1", b"secret2"), (b"0,", b"1,"), (b":1", b":2"), (b'"b"', b'"c"')):
        document = document.replace(old, new)
    return document.replace(b'"serial":2', b'"serial":1')
