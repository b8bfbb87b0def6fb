"""TPC-H's `lineitem` with five filters, as `tpchgen-cli` writes it: scale 1, six million rows.

Q12 and Q6 have five conjuncts on this table; two more put regular expressions and a Python function
on the comment beside ordinary comparisons.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

from querymesh_lab.bench.data.row_predicate import RowPredicate
from querymesh_lab.bench.guest.case import GuestCase
from querymesh_lab.bench.guest.condition import Sql, matches, texts
from querymesh_lab.bench.guest.tables import PARTS, AbsentError, StoredTable, Workshop

GROUP = "tpch"
SCALE, QUICK_SCALE = "1", "0.005"


def generator() -> str:
    """The command that makes the table, beside this Python or on the path."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    found = str(beside) if beside.is_file() else shutil.which("tpchgen-cli")
    if found is None:
        raise AbsentError("no tpchgen-cli here; pip install 'querymesh-lab[tpch]' brings it")
    return found


def lineitem(workshop: Workshop) -> StoredTable:
    """The table in Parquet."""
    scale = QUICK_SCALE if workshop.bench.quick else SCALE
    command = generator()

    def write(folder: Path) -> StoredTable:
        above = folder.with_name(folder.name + "-made")
        subprocess.run(
            [command, "parquet", "-s", scale, "--tables", "lineitem", "--parts", str(PARTS),
             "--output-dir", str(above)],
            check=True, capture_output=True,
        )  # fmt: skip
        shutil.move(above / "lineitem", folder)
        shutil.rmtree(above)
        rows = sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
        return StoredTable(folder, rows, {"scale": scale})

    return workshop.table(f"{GROUP}-lineitem-{scale}", write)


def strange_wording(comment: str) -> bool:
    """Few different words for its length, or one word twice in a row."""
    words = comment.split()
    repeated = any(a == b for a, b in pairwise(words))
    return repeated or len(set(words)) < len(words) - 1


Q12 = texts(
    "l_shipmode IN ('MAIL', 'SHIP')",
    "l_commitdate < l_receiptdate",
    "l_shipdate < l_commitdate",
    "l_receiptdate >= DATE '1994-01-01'",
    "l_receiptdate < DATE '1995-01-01'",
)
Q6 = texts(
    "l_shipdate >= DATE '1994-01-01'",
    "l_shipdate < DATE '1995-01-01'",
    "l_discount >= 0.05",
    "l_discount <= 0.07",
    "l_quantity < 24",
)
COMMENTS = (
    matches("l_comment", "(furious|careful|quick)ly.*(deposits|requests|packages)"),
    Sql("l_quantity < 40"),
    matches("l_comment", "[aeiou]{2}.*(haggle|sleep|nag)"),
    Sql("l_commitdate < l_receiptdate"),
    matches("l_shipinstruct", "^(DELIVER|TAKE)"),
)
MIXED = (
    Sql("l_shipmode IN ('AIR', 'REG AIR')"),
    RowPredicate("strange_wording", ("l_comment",), strange_wording),
    Sql("l_commitdate < l_receiptdate"),
    matches("l_comment", "(furious|careful|quick)ly"),
    Sql("l_quantity < 24"),
)

CASES: tuple[GuestCase, ...] = (
    GuestCase("lineitem Q12", GROUP, "sql", lineitem, Q12),
    GuestCase("lineitem Q6", GROUP, "sql", lineitem, Q6),
    GuestCase("lineitem comments", GROUP, "regex", lineitem, COMMENTS),
    GuestCase("lineitem mixed", GROUP, "mixed", lineitem, MIXED),
)
