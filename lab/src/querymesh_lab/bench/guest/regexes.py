"""Is there a faster RLIKE than Arrow's? `python -m querymesh_lab.bench.guest.regexes`.

The regular expressions of the security cases on their real columns, by every library that is
installed, in processor time with the way from and to Arrow: Arrow's RE2, Rust's `regex` in Polars
and, string by string, in `rure`, RE2 itself (`google-re2`), Hyperscan, and Python's `re`. `same` is
whether the answers are Arrow's.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh_lab.bench.data import csic, weblog
from querymesh_lab.bench.data.real_folder import folder_with
from querymesh_lab.bench.guest.cases.security import CSIC_SQL, WEBLOG_SQL
from querymesh_lab.bench.guest.condition import Sql

ROUNDS = 7

Matcher = Callable[[pa.Array], Any]


def arrow(pattern: str) -> Matcher:
    """RE2 in Arrow."""
    return lambda texts: pc.match_substring_regex(texts, pattern)


def polars(pattern: str) -> Matcher:
    """Rust's regex in Polars."""
    pl = importlib.import_module("polars")
    return lambda texts: pl.from_arrow(texts).str.contains(pattern).to_arrow()


def google_re2(pattern: str) -> Matcher:
    """RE2 by its own Python binding."""
    search = importlib.import_module("re2").compile(pattern).search
    return lambda texts: [search(each) is not None for each in texts.to_pylist()]


def rure(pattern: str) -> Matcher:
    """Rust's regex by a C binding."""
    is_match = importlib.import_module("rure").compile(pattern).is_match
    return lambda texts: [is_match(each) for each in texts.to_pylist()]


def hyperscan(pattern: str) -> Matcher:
    """Hyperscan, which stops at the first match of a text."""
    module = importlib.import_module("hyperscan")
    database = module.Database()
    flags = module.HS_FLAG_SINGLEMATCH
    database.compile(expressions=[pattern.encode()], flags=[flags])

    def match(texts: pa.Array) -> list[bool]:
        found = [False] * len(texts)
        for row, each in enumerate(texts.cast(pa.binary()).to_pylist()):
            hits: list[int] = []
            database.scan(each, match_event_handler=lambda *_, hits=hits: hits.append(1))
            found[row] = bool(hits)
        return found

    return match


def python(pattern: str) -> Matcher:
    """Python's own `re`, string by string."""
    search = re.compile(pattern).search
    return lambda texts: [search(each) is not None for each in texts.to_pylist()]


LIBRARIES = {
    "Arrow (RE2)": arrow, "Polars (Rust)": polars, "google-re2": google_re2, "rure": rure,
    "Hyperscan": hyperscan, "Python": python,
}  # fmt: skip


def cases() -> Iterator[tuple[str, pa.Array, str]]:
    """Data set, texts without NULL, pattern."""
    for name, files, read, conditions in (
        ("CSIC", csic.FILES, csic.requests, CSIC_SQL),
        ("web log", [weblog.FILE], weblog.requests, WEBLOG_SQL),
    ):
        folder = folder_with(files)
        if folder is None:
            print(f"no {name} here; QUERYMESH_DATA=folder says where the data are")
            continue
        table = read(folder, None)
        for condition in conditions:
            if isinstance(condition, Sql) and condition.regex is not None:
                column, pattern = condition.regex
                texts = table[column].combine_chunks().drop_null()
                yield name, texts.cast(pa.string()), pattern


def main() -> None:
    """Print a line for each pattern and library that is installed."""
    print("| data | pattern | library | µs a row | Arrow's time over it | same |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, texts, pattern in cases():
        matchers: dict[str, Matcher] = {}
        for library, make in LIBRARIES.items():
            try:
                matchers[library] = make(pattern)
            except ModuleNotFoundError:
                continue
        least = dict.fromkeys(matchers, float("inf"))
        answers: dict[str, Any] = {}
        for _ in range(ROUNDS):
            for library, matcher in matchers.items():
                started = process_time()
                answers[library] = matcher(texts)
                least[library] = min(least[library], process_time() - started)
        expected = np.asarray(answers["Arrow (RE2)"])
        for library, seconds in least.items():
            us, times = 1e6 * seconds / len(texts), least["Arrow (RE2)"] / seconds
            same = "yes" if bool((np.asarray(answers[library]) == expected).all()) else "no"
            shown = pattern.replace("|", "\\|")
            print(f"| {name} | `{shown}` | {library} | {us:.3f} | {times:.2f} | {same} |")


if __name__ == "__main__":
    main()
