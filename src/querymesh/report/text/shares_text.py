"""Shards as text: what a hypercube looks like, and what it costs for usual shapes of queries.

`python -m querymesh.report.text.shares_text` prints the tables of docs/guide/shards.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from textwrap import indent

from querymesh.mesh.hypercube import Dimension, Hypercube, join_dimensions, rows_of
from querymesh.optimize.shards.shares import choose_shares
from querymesh.report.text.figures import counted, percent, table

SHARD_COUNTS = (1, 2, 4, 8, 16, 64, 256, 1024)


def shares_text(cube: Hypercube, rates: Mapping[str, float]) -> str:
    """The cube for people: its dimensions, how often each stream is copied, and what that sums to.

    >>> chain = join_dimensions("rst", {"r.x = s.x": "rs", "s.y = t.y": "st"})
    >>> rates = {"r": 1.0, "s": 1.0, "t": 1.0}
    >>> print(shares_text(choose_shares(chain, rates, 4), rates))
    4 shards = 2 × 2
      r.x = s.x  2 parts  places r, s
      s.y = t.y  2 parts  places s, t
    copies of a row
      r  2
      s  1
      t  2
    1.67 rows sent for each row in; each shard gets 41.7 % of all rows
    """
    cut = [d for d, share in enumerate(cube.shares) if share > 1]
    factors = " × ".join(str(cube.shares[d]) for d in cut)
    lines = [counted(cube.shards, "shard") + (f" = {factors}" if len(cut) > 1 else "")]
    if not cut:
        return lines[0] + ": every row is sent once"
    dimensions = [
        (
            cube.dimensions[d].name,
            f"{cube.shares[d]} parts",
            "places " + ", ".join(sorted(cube.dimensions[d].owners)),
        )
        for d in cut
    ]
    copies = [(stream, f"{cube.replication(stream):,}") for stream in rates]
    sent, load = cube.expected_replication(rates), cube.expected_load(rates)
    lines += [
        indent(_rows(dimensions), "  "),
        "copies of a row",
        indent(_rows(copies), "  "),
        f"{sent:,.2f} rows sent for each row in; each shard gets {percent(load)} of all rows",
    ]
    return "\n".join(lines)


def _rows(cells: Sequence[Sequence[str]]) -> str:
    first, *others = cells
    return table(first, others, left=(0, 2))


def query_shapes() -> dict[str, tuple[Dimension, ...]]:
    """Usual shapes of joins, by name, as the dimensions of their hypercubes."""
    return {
        **{f"common key of {n}": _joined(n, [range(n)]) for n in (3, 5, 10)},
        **{f"chain of {n}": _joined(n, pairwise(range(n))) for n in (3, 5)},
        "star of 5": _joined(5, [(0, k) for k in range(1, 5)]),
        **{f"clique of {n}": _joined(n, combinations(range(n), 2)) for n in (4, 5)},
        "comparison of 2": (rows_of("a"), rows_of("b")),
    }


def shard_tables() -> str:
    """Two tables in Markdown: rows sent for each row in, and each shard's part of all rows."""
    sent, load = {}, {}
    for shape, dimensions in query_shapes().items():
        rates = {stream: 1.0 for dimension in dimensions for stream in dimension.owners}
        cubes = [choose_shares(dimensions, rates, shards) for shards in SHARD_COUNTS]
        sent[shape] = [_plain(cube.expected_replication(rates)) for cube in cubes]
        load[shape] = [_plain(100 * cube.expected_load(rates)) + " %" for cube in cubes]
    return (
        _markdown("rows sent for each row in", sent)
        + "\n\n"
        + _markdown("part of all rows in each shard", load)
    )


def _joined(streams: int, classes: Iterable[Iterable[int]]) -> tuple[Dimension, ...]:
    names = "abcdefghij"[:streams]
    owners = ["".join(names[k] for k in members) for members in classes]
    return join_dimensions(names, {f"key of {' and '.join(group)}": group for group in owners})


def _plain(number: float) -> str:
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def _markdown(what: str, rows: Mapping[str, Sequence[str]]) -> str:
    lines = [[what, *(str(count) for count in SHARD_COUNTS)]]
    lines.append(["---", *("---:" for _ in SHARD_COUNTS)])
    lines += [[shape, *cells] for shape, cells in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(shard_tables())
