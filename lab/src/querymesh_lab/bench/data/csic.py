"""CSIC 2010: 61,065 HTTP requests to a web shop, 25,065 of them anomalous, one line a request.

Which request is an attack is not told to anybody: that is what the predicates are to find out.
"""

from __future__ import annotations

import gzip
import math
import re
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qsl, unquote_plus

import numpy as np
import pyarrow as pa

from querymesh_lab.bench.data.row_predicate import RowPredicate

FILES = ("csic2010/normal_36000.txt.gz", "csic2010/anomalous_25065.txt.gz")
RELATION = "Requests"
ENCODING = "latin-1"
HOST = re.compile(r"^https?://[^/]+")


def requests(folder: Path, rows: int | None = None, seed: int = 0) -> pa.Table:
    """Requests of both files, mixed, one row each, with what a proxy would log of them."""
    lines: list[str] = []
    for name in FILES:
        with gzip.open(folder / name, "rt", encoding=ENCODING, newline="\n") as file:
            lines += [line.rstrip("\r\n") for line in file if line.strip()]
    order = np.random.default_rng(seed).permutation(len(lines))[:rows]
    parsed = [parse_request(lines[i]) for i in order]
    columns = {name: [row[k] for row in parsed] for k, name in enumerate(COLUMNS)}
    return pa.table({"id": np.arange(len(parsed)), **columns})


COLUMNS = ("method", "path", "page", "query", "query_length", "parameters")


def parse_request(line: str) -> tuple[str, str, str, str, int, int]:
    """Method, path, page (the last part of the path), query text, its length and parameters.

    >>> parse_request("get http://localhost:8080/shop/pay.jsp?a=1&b=2")
    ('get', '/shop/pay.jsp', 'pay.jsp', 'a=1&b=2', 7, 2)
    """
    method, _, url = line.partition(" ")
    path, _, query = HOST.sub("", url).partition("?")
    parameters = query.count("&") + 1 if query else 0
    return method, path, path.rsplit("/", 1)[-1], query, len(query), parameters


_INJECTION = re.compile(
    r"\b(union|select|insert|update|delete|drop|exec|waitfor)\b.{0,80}"
    r"\b(from|into|table|where|set|delay|like)\b"
    r"|['\"]\s*(or|and)\s*['\"\d]|--\s*$|<\s*script|javascript:|onerror\s*="
    r"|\.\./|\bset-cookie\s*:|\|\s*\w|;\s*\w+\s*="
)
_ORDINARY = re.compile(r"[\w áéíóúñ.,@/-]*", re.ASCII)


def decoded_attack(query: str) -> bool:
    """A pattern of injection, scripting or traversal, after undoing two layers of encoding."""
    return _INJECTION.search(unquote_plus(unquote_plus(query)).lower()) is not None


def strange_value(query: str) -> bool:
    """Some parameter has a value that no form of the shop would produce."""
    return any(
        _ORDINARY.fullmatch(value) is None or len(value) > 40
        for _, value in parse_qsl(query, keep_blank_values=True)
    )


def many_symbols(query: str) -> bool:
    """The mix of characters is richer than ordinary input: more than 4.2 bits a character."""
    if not query:
        return False
    total = len(query)
    entropy = -sum(n / total * math.log2(n / total) for n in Counter(query).values())
    return entropy > 4.2


def touches_account(path: str, query: str) -> bool:
    """The request writes: it signs in, registers, pays or fills the basket."""
    if not path.endswith((".jsp", ".php", ".asp")):
        return False
    names = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    return not names.isdisjoint({"pwd", "password", "precio", "cantidad", "modo", "login"})


PREDICATES = (
    RowPredicate("decoded_attack", ("query",), decoded_attack),
    RowPredicate("strange_value", ("query",), strange_value),
    RowPredicate("many_symbols", ("query",), many_symbols),
    RowPredicate("touches_account", ("path", "query"), touches_account),
)

CONDITIONS = (
    "query RLIKE '(select|union|drop|insert|script|alert|cookie|waitfor|passwd)'",
    "query RLIKE '[^a-z0-9=&+%._@-]'",
    "path RLIKE '[.](jsp|php|asp)$'",
    "query RLIKE '(pwd|password|precio|cantidad|modo|login)='",
)
"""The same hunt with nothing but SQL, on the text as it came."""
