"""Compare filterlang with its peers: ``python -m tools.bench.filterlang``.

The same filter with two terms is parsed into a tree and compiled to Django's ``Q``, by this
package, by odata-query (an OData parser based on sly, with a Django backend) and by lark (LALR, its
fastest parser, with the tokens and nodes of this package; only the tree). The libraries alternate
in a single process. The results are medians of many rounds. The benchmark requires
requirements-bench.txt.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import django
from django.conf import settings

from tools.bench.figures import Figure, publish

FILTER = "field['kind'] = 'Deployment' AND field['health_status'] = 'DEGRADED'"
ODATA = "kind eq 'Deployment' and health_status eq 'DEGRADED'"
ROUNDS = 300
CALLS = 20

# The grammar of the complete language, so that lark's tables have their full size.
LARK = r"""
    ?start: disjunction
    ?disjunction: conjunction (_OR conjunction)*
    ?conjunction: negation (_AND negation)*
    ?negation: _NOT negation -> negated | "(" disjunction ")" | term
    term: ref OPERATOR value
        | ref _NOT? _IN "(" value ("," value)* ")" -> membership
        | ref _BETWEEN value _AND value -> between
        | ref (EXISTS | _IS _NOT? _NULL) -> presence
    ref: ROOT "[" STRING "]"
    value: STRING | INTEGER | BOOLEAN
    ROOT: "field" | "labels"
    OPERATOR: /[!<>~]=|[=<>]|(contains|starts_with|ends_with)(?![a-z_])/i
    _AND: /and(?![a-z_])/i
    _OR: /or(?![a-z_])/i
    _NOT: /not(?![a-z_])/i
    _IN: /in(?![a-z_])/i
    _BETWEEN: /between(?![a-z_])/i
    _IS: /is(?![a-z_])/i
    _NULL: /null(?![a-z_])/i
    EXISTS: /exists(?![a-z_])/i
    BOOLEAN: /(true|false)(?![a-z_])/i
    INTEGER: /-?[0-9]+/
    STRING: /'[^'\\]*(?:(?:\\'|\\(?!')|'')[^'\\]*)*'(?!')/
    %ignore /[ \t\r\n]+/
"""


def lark_parser() -> Callable[[str], Any]:
    """Return lark's parser with this package's nodes."""
    import lark

    from filterlang import nodes

    class Build(lark.Transformer[Any, Any]):
        def ref(self, children: list[Any]) -> Any:
            return children[1]

        def value(self, children: list[Any]) -> nodes.Value:
            (token,) = children
            return nodes.Value(
                token[1:-1].replace("''", "'"), quoted=True, position=token.start_pos
            )

        def term(self, children: list[Any]) -> nodes.Term:
            name, sign, value = children
            return nodes.Term(name[1:-1], name.start_pos, str(sign), sign.start_pos, (value,))

        def conjunction(self, children: list[Any]) -> nodes.And:
            return nodes.And(tuple(children))

    return lark.Lark(LARK, parser="lalr", transformer=Build()).parse


def contenders() -> dict[str, dict[str, Callable[[], Any]]]:
    """Return the functions to measure by result and library. This package is the first."""
    from odata_query.django.django_q import AstToDjangoQVisitor
    from odata_query.grammar import ODataLexer, ODataParser

    from filterlang.compiler import compile_filter
    from filterlang.parser import parse
    from tests.filterlang.rows import Row, RowFilters

    def odata() -> Any:
        return ODataParser().parse(ODataLexer().tokenize(ODATA))

    lark = lark_parser()
    if lark(FILTER) != parse(FILTER):
        sys.exit("lark and filterlang return different trees")
    return {
        "cold, text to tree": {
            "filterlang": lambda: parse(FILTER),
            "lark": lambda: lark(FILTER),
            "odata-query": odata,
        },
        "cold, text to Q": {
            "filterlang": lambda: compile_filter.__wrapped__(RowFilters, FILTER),
            "odata-query": lambda: AstToDjangoQVisitor(Row).visit(odata()),
        },
        "cached, text to Q": {"filterlang": lambda: compile_filter(RowFilters, FILTER)},
    }


def medians(works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median duration of a call of each function in µs. The calls are interleaved."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            started = time.perf_counter()
            for _ in range(CALLS):
                work()
            times[name].append((time.perf_counter() - started) / CALLS * 1e6)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    """Print the durations in µs, and the ratios to this package."""
    settings.configure(INSTALLED_APPS=["django.contrib.contenttypes"])
    django.setup()
    for title, works in contenders().items():
        measured = medians(works)
        ours = measured.pop("filterlang")
        publish(
            *(
                Figure(
                    work=f"filter of two terms, {title}",
                    ours=ours,
                    peer=each,
                    peer_name=name,
                    unit="µs",
                    at_least=1,
                )
                for name, each in measured.items()
            )
        )
        if title.startswith("cached"):
            publish(
                Figure(
                    work=f"filter of two terms, {title}",
                    ours=ours,
                    peer=1.0,
                    peer_name="the target itself",
                    unit="µs",
                    at_most=1,
                )
            )


if __name__ == "__main__":
    main()
