"""RBO's Table 3 with the costs of this machine: what an arrival takes at either kind of join."""

from __future__ import annotations

from querymesh.fabric.profile.calibrate_costs import (
    ARRIVING,
    HASHED,
    NESTED,
    STORED,
    spent,
    table_3,
)
from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.claim import Claim, Result

MEASURED = (
    "measured on join states of this engine, two streams on a number key, an arrival finding one "
    "row; slopes between two sizes, so that what is paid once for a micro-batch is left out. The "
    "paper names these costs and prints no figures for them"
)
_MEANING = {
    "move": "an arrival's keys, codes and columns",
    "comp": "one stored row compared, without an index",
    "hash": "its share of a hash index",
    "probe": "asking the other hash index, and the result",
}


def results(bench: Bench) -> list[Result]:
    """The four costs, logged as a table, and how far an arrival's cost grows with what is there."""
    found = table_3()
    looped, hashed = found.nested_loops, found.symmetric_hash
    costs_us = {
        name: 1e6 * seconds
        for name, seconds in (
            ("move", looped.move_s),
            ("comp", looped.comp_s),
            ("hash", hashed.hash_s),
            ("probe", hashed.probe_s),
        )
    }
    row_us = 1e6 * hashed.row_s[0]
    even = (hashed.hash_s + hashed.probe_s) / looped.comp_s
    for name, cost_us in costs_us.items():
        bench.log(f"  {name:<5} {cost_us:>9.5f} µs  {_MEANING[name]}")
    bench.log(f"  an arrival at n stored rows, {NESTED}: {costs_us['move']:.4f} µs + n · comp")
    bench.log(f"  an arrival at any number, {HASHED}: {row_us:.4f} µs; the same at n = {even:,.0f}")
    few, many = STORED
    grows, again = _growth(few, many), _growth(few, many)
    claim = Claim(
        "rate", "table 3",
        f"an arrival's cost at {many:,} stored rows over that at {few:,}: {NESTED} over {HASHED}",
        None,
    )  # fmt: skip
    details = {"costs_us": costs_us, "even_at_rows": even, "growth": grows}
    ratio = grows[NESTED] / grows[HASHED]
    a_a = again[NESTED] / again[HASHED] / ratio
    return [Result(claim, ratio, a_a, MEASURED, details)]


def _growth(few: int, many: int) -> dict[str, float]:
    """By which factor an arrival's cost grows from few stored rows to many, at either join."""
    return {
        kind: spent(kind, ARRIVING[0], many).total_s / spent(kind, ARRIVING[0], few).total_s
        for kind in (NESTED, HASHED)
    }
