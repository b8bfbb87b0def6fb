"""Real requests, connections, log lines and attacks, with what a security engineer would ask.

Each data set is asked in SQL, in Python row by row, in Python over Arrow arrays, and in a mixture;
some also with UDFs of PySpark handed to `qm.where` as they are, or cached. Nobody arranged these
data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from querymesh_lab.bench.data import csic, honeypot, kdd, weblog
from querymesh_lab.bench.data.real_folder import DATA, folder_with
from querymesh_lab.bench.guest.case import GuestCase, Kind
from querymesh_lab.bench.guest.cases import security_predicates as asked
from querymesh_lab.bench.guest.condition import Condition, Sql, matches, texts
from querymesh_lab.bench.guest.tables import AbsentError, StoredTable, Workshop, stored

GROUP = "security"
QUICK_ROWS = 3_000


def _table(
    name: str, files: Sequence[str], read: Callable[[Path, int | None], pa.Table]
) -> Callable[[Workshop], StoredTable]:
    def of(workshop: Workshop) -> StoredTable:
        folder = folder_with(files)
        if folder is None:
            raise AbsentError(f"no {name} here; {DATA}=folder says where the data are")
        wanted = QUICK_ROWS if workshop.bench.quick else None

        def write(target: Path) -> StoredTable:
            return stored(read(folder, wanted), target)

        return workshop.table(f"{GROUP}-{name.replace(' ', '-')}-{wanted}", write)

    return of


CSIC = _table("CSIC requests", csic.FILES, csic.requests)
KDD = _table("KDD connections", [kdd.FILE], kdd.connections)
WEBLOG = _table("web log", [weblog.FILE], weblog.requests)
HONEYPOT = _table("honeypot attacks", [honeypot.FILE], honeypot.attacks)

CSIC_SQL = (
    matches("query", "(select|union|drop|insert|script|alert|cookie|waitfor|passwd)"),
    matches("query", "[^a-z0-9=&+%._@-]"),
    matches("path", "[.](jsp|php|asp)$"),
    matches("query", "(pwd|password|precio|cantidad|modo|login)="),
)
CSIC_MIXED: tuple[Condition, ...] = (
    Sql("method = 'post'"),
    asked.STRANGE_VALUE,
    matches("query", "(pwd|password|precio|cantidad|modo|login)="),
    asked.DECODED_ATTACK,
    Sql("query_length > 20"),
)

KDD_SQL = texts(
    "protocol_type = 'tcp'",
    "flag IN ('S0', 'S1', 'S2', 'S3', 'REJ', 'RSTO', 'RSTR')",
    "serror_rate + rerror_rate > 0.5",
    "dst_host_count / (1 + dst_host_srv_count) > 2",
    "ln(1 + src_bytes) < 3 + ln(1 + dst_bytes)",
)
KDD_MIXED: tuple[Condition, ...] = (
    Sql("protocol_type = 'tcp'"),
    asked.ODD_BYTES,
    matches("service", "^(http|ftp|smtp|telnet|private)"),
    asked.FAR_FROM_TYPICAL,
    Sql("dst_host_count / (1 + dst_host_srv_count) > 2"),
)

WEBLOG_SQL: tuple[Condition, ...] = (
    Sql("status >= 300"),
    matches("path", "(wp-|admin|login|passwd|[.]env|[.]git|cgi-bin|[.]php|setup|xmlrpc)"),
    matches("agent", "([Bb]ot|[Cc]rawl|[Ss]pider|curl|wget|python|[Jj]ava)"),
    Sql("referrer = '-'"),
)
WEBLOG_MIXED: tuple[Condition, ...] = (
    matches("agent", "([Bb]ot|[Cc]rawl|[Ss]pider|curl|wget|python|[Jj]ava)"),
    asked.NO_CRAWLER,
    Sql("method = 'GET'"),
    asked.DEEP_PATH,
)

HONEYPOT_SQL: tuple[Condition, ...] = (
    Sql("proto = 'TCP'"),
    matches("host", "(tokyo|singapore|sydney|oregon)$"),
    Sql("hour(datetime) < 6"),
    Sql("dpt IN (22, 23, 135, 445, 1433, 3306, 3389)"),
    Sql("shiftright(src, 24) NOT IN (10, 127, 224)"),
)
HONEYPOT_MIXED: tuple[Condition, ...] = (
    Sql("dpt IN (22, 23, 135, 445, 1433, 3306, 3389)"),
    asked.UNLISTED_SOURCE,
    matches("host", "(tokyo|singapore|sydney|oregon)$"),
    asked.ODD_SOURCE_PORT,
)


def _four(
    name: str,
    table: Callable[[Workshop], StoredTable],
    sql: tuple[Kind, tuple[Condition, ...]],
    python: tuple[Sequence[Condition], Sequence[Condition]],
    mixed: tuple[Condition, ...],
) -> tuple[GuestCase, ...]:
    """The four ways to ask; Python is by rows and by arrays. All columns are written."""
    kind, conditions = sql
    return (
        GuestCase(f"{name} sql", GROUP, kind, table, conditions, sink="noop"),
        GuestCase(f"{name} rows", GROUP, "python", table, tuple(python[0]), sink="noop"),
        GuestCase(f"{name} arrays", GROUP, "python", table, tuple(python[1]), sink="noop"),
        GuestCase(f"{name} mixed", GROUP, "mixed", table, mixed, sink="noop"),
    )


CASES: tuple[GuestCase, ...] = (
    *_four("csic", CSIC, ("regex", CSIC_SQL), (csic.PREDICATES, asked.CSIC_ARRAYS), CSIC_MIXED),
    *_four("kdd", KDD, ("sql", KDD_SQL), (kdd.PREDICATES, asked.KDD_ARRAYS), KDD_MIXED),
    *_four("weblog", WEBLOG, ("regex", WEBLOG_SQL), (asked.WEBLOG_ROWS, asked.WEBLOG_ARRAYS),
           WEBLOG_MIXED),
    *_four("honeypot", HONEYPOT, ("sql", HONEYPOT_SQL),
           (asked.HONEYPOT_ROWS, asked.HONEYPOT_ARRAYS), HONEYPOT_MIXED),
    GuestCase("csic udf", GROUP, "python", CSIC, csic.PREDICATES, given="udf"),
    GuestCase("kdd pandas_udf", GROUP, "python", KDD, kdd.PREDICATES, given="pandas_udf"),
    GuestCase("honeypot arrow_udf", GROUP, "python", HONEYPOT, asked.HONEYPOT_ARRAYS,
              given="arrow_udf"),
    GuestCase("csic sql cached", GROUP, "regex", CSIC, CSIC_SQL, cached=True),
    GuestCase("kdd rows cached", GROUP, "python", KDD, kdd.PREDICATES, cached=True),
)  # fmt: skip
