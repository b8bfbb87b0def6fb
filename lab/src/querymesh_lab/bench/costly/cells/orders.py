"""Three questions of different price on reviews and films: what an order that knew all would pay.

The price of the best order per row known afterwards: of a row that all hold for, all three; of any
other, the cheapest that does not. Who asks in one order for all rows pays more, and who has to
learn pays for that too: everything is counted, training included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import pyarrow as pa

import querymesh as qm
from querymesh_lab.bench.costly import rivals
from querymesh_lab.bench.costly.cell import Cell, Ground
from querymesh_lab.bench.costly.contest import Build, Contest
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.questions import RULES
from querymesh_lab.bench.costly.rivals import Question
from querymesh_lab.bench.data import reviews
from querymesh_lab.bench.data.real_folder import DATA, folder_with
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.guest.tables import AbsentError

GROUP = "orders"
QUICK_ROWS = 150
MONEY = 0.001
DELAY_S = 0.001
MOST = 1.15
PRICES = (1.0, 2.0, 4.0)

Row = dict[str, Any]
Truth = Callable[[Row], bool]

_STORY = re.compile(
    r"\b(stor(?:y|ies)|plot\w*|script|writ\w*|narrative|tale|ending|twist\w*)\b", re.IGNORECASE
)


def _kind_holds(kind: str) -> Truth:
    """A question that only films of one kind can fail: those that are not praised."""
    return lambda row: kind not in row["genre"] or bool(RULES["praises"](row["text"]))


@dataclass(frozen=True)
class Setup:
    """Three questions in the order of their price, and the columns that the table has."""

    name: str
    questions: Mapping[str, Truth]
    columns: tuple[str, ...]


THREE: Mapping[str, Truth] = {
    "praises": lambda row: bool(RULES["praises"](row["text"])),
    "story": lambda row: _STORY.search(row["text"]) is not None,
    "positive": lambda row: bool(row["positive"]),
}
KINDS: Mapping[str, Truth] = {
    f"good {kind.lower()}": _kind_holds(kind) for kind in ("Drama", "Comedy", "Action")
}
SETUPS = (
    Setup("three questions", THREE, ("id", "text", "genre", "rating", "fresh")),
    Setup("film kinds", KINDS, ("id", "text", "genre", "rating", "fresh")),
    Setup("film kinds, text only", KINDS, ("id", "text")),
)


def distinct_reviews(rows: int | None) -> list[Row]:
    """Reviews whose texts differ, so that an answer depends on the text alone."""
    folder = folder_with(reviews.FILES)
    if folder is None:
        raise AbsentError(f"no reviews here; {DATA}=folder says where the data are")
    by_text: dict[str, Row] = {}
    for row in reviews.reviews(folder).to_pylist():
        by_text.setdefault(row["text"], row)
    return list(by_text.values())[:rows]


def prices(holds: list[list[bool]]) -> dict[tuple[int, ...], float]:
    """What each order for all rows costs; `()` stands for the best order of each row.

    >>> prices([[True, False, True]])[()], prices([[True, False, True]])[0, 1, 2]
    (2.0, 3.0)
    """
    found: dict[tuple[int, ...], float] = {(): 0.0}
    for row in holds:
        false = [price for price, held in zip(PRICES, row, strict=True) if not held]
        found[()] += min(false) if false else sum(PRICES)
    for order in permutations(range(len(PRICES))):
        found[order] = sum(_price_in(order, row) for row in holds)
    return found


def _price_in(order: tuple[int, ...], row: list[bool]) -> float:
    paid = 0.0
    for at in order:
        paid += PRICES[at]
        if not row[at]:
            break
    return paid


def run(setup: Setup, ground: Ground) -> list[Finding]:
    """The money of each policy over the clairvoyant's."""
    told = distinct_reviews(QUICK_ROWS if ground.bench.quick else None)
    names = list(setup.questions)
    holds = [[holds(row) for holds in setup.questions.values()] for row in told]
    limits = prices(holds)
    single = min((order for order in limits if order), key=limits.__getitem__)
    table = pa.table({name: [row[name] for row in told] for name in setup.columns})
    truth = {
        name: {json.dumps(row["text"]): held[at] for row, held in zip(told, holds, strict=True)}
        for at, name in enumerate(names)
    }
    times = dict(zip(names, PRICES, strict=True))
    file = ground.folder / f"truth of {setup.name}.json"
    file.write_text(json.dumps(truth))
    manners = Manners(money_per_call=MONEY, delay_s=DELAY_S, times=times, truth=str(file))

    def policy(name: str) -> Build:
        asked = [Question(ground.endpoint.address, each, ("text",)) for each in names]
        return lambda df: rivals.where(
            df,
            *(
                each.predicate(
                    name=each.question.replace(" ", "_"),
                    price=qm.Price(per_call=MONEY * times[each.question]),
                )
                for each in asked
            ),
            policy=name,
        )

    contest = Contest(
        ground, ground.stored(table), manners,
        {"where, mesh": policy("mesh"), "where, single": policy("single")},
    )  # fmt: skip
    found = {name: contest.once(name) for name in contest.builds}
    expected = sum(map(all, holds))
    if set(found.values()) != {expected}:
        raise AssertionError(f"{setup.name}: found {found}, not {expected}")
    best = limits[()] * MONEY
    paid = {name: contest.money(name) / best for name in contest.builds}
    details = {
        "group": GROUP, "rows": len(told), "clairvoyant": best, "over_clairvoyant": paid,
        "selectivities": [sum(column) / len(told) for column in zip(*holds, strict=True)],
        "calls": {name: counts[-1].calls for name, counts in contest.counts.items()},
        "explained": contest.explained["where, mesh"],
    }  # fmt: skip
    group = {"group": GROUP}
    return [
        Finding(setup.name, "money of where over the best order per row",
                paid["where, mesh"], "×", "at most", MOST, details),
        Finding(setup.name, 'money of where, policy="single", over the best order per row',
                paid["where, single"], "×", details=group),
        Finding(setup.name, f"best single order ({', '.join(names[at] for at in single)})",
                limits[single] / limits[()], "×", details=group),
    ]  # fmt: skip


CASES = tuple(Cell(GROUP, setup.name, partial(run, setup)) for setup in SETUPS)
