"""KDD 1999: 494,021 connections with 41 features; the label is left out: nobody has it in time."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from querymesh_lab.bench.data.row_predicate import RowPredicate

FILE = "kdd99/kddcup.data_10_percent.gz"
RELATION = "Connections"
COLUMNS = tuple(
    """duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot
    num_failed_logins logged_in num_compromised root_shell su_attempted num_root num_file_creations
    num_shells num_access_files num_outbound_cmds is_host_login is_guest_login count srv_count
    serror_rate srv_serror_rate rerror_rate srv_rerror_rate same_srv_rate diff_srv_rate
    srv_diff_host_rate dst_host_count dst_host_srv_count dst_host_same_srv_rate
    dst_host_diff_srv_rate dst_host_same_src_port_rate dst_host_srv_diff_host_rate
    dst_host_serror_rate dst_host_srv_serror_rate dst_host_rerror_rate
    dst_host_srv_rerror_rate""".split()  # noqa: SIM905 (one name a line would be forty lines)
)


def connections(folder: Path, rows: int | None = None, seed: int = 0) -> pa.Table:
    """Connections in random order, with an id."""
    with gzip.open(folder / FILE) as file:
        table = csv.read_csv(
            file, read_options=csv.ReadOptions(column_names=[*COLUMNS, "label"])
        ).drop_columns(["label"])
    order = np.random.default_rng(seed).permutation(table.num_rows)[:rows]
    mixed = table.take(pa.array(order)).combine_chunks()
    return mixed.add_column(0, "id", pa.array(np.arange(len(order))))


TYPICAL = tuple(
    (0.1 * k, 0.9 - 0.07 * k, 0.05 * (k % 4), 1.0 - 0.08 * k, 0.02 * k) for k in range(12)
)
"""Centres of ordinary traffic towards one host, as a clustering would have left them."""

USUAL_BYTES = {
    "http": (5.4, 1.0, 7.5, 1.6), "smtp": (6.7, 0.8, 5.8, 0.5), "ftp_data": (6.5, 3.0, 1.0, 2.5),
    "domain_u": (3.7, 0.3, 4.2, 0.8), "telnet": (5.0, 2.5, 6.0, 2.5), "ecr_i": (6.9, 0.2, 0.0, 0.1),
}  # fmt: skip
"""Mean and deviation of the logarithm of bytes sent and received, by service."""


def no_flood(count: int, srv_count: int, same_srv_rate: float, serror_rate: float) -> bool:
    """Not one of the floods that everybody sees: a logistic score of the last two seconds."""
    score = -4.0 + 0.02 * count + 0.008 * srv_count + 0.5 * same_srv_rate + 2.5 * serror_rate
    return 1.0 / (1.0 + math.exp(-score)) < 0.5


def odd_bytes(service: str, src_bytes: int, dst_bytes: int) -> bool:
    """The bytes of the connection are unlike its service's."""
    usual = USUAL_BYTES.get(service)
    if usual is None:
        return True
    sent = (math.log1p(src_bytes) - usual[0]) / usual[1]
    received = (math.log1p(dst_bytes) - usual[2]) / usual[3]
    return sent * sent + received * received > 2.0


def far_from_typical(
    same: float, different: float, port: float, serror: float, rerror: float
) -> bool:
    """The host's recent traffic is near none of the typical centres."""
    nearest = math.inf
    for a, b, c, d, e in TYPICAL:
        distance = (
            abs(different - a)
            + abs(same - b)
            + abs(port - c)
            + abs(1 - serror - d)
            + abs(rerror - e)
        )
        if distance < nearest:
            nearest = distance
    return nearest > 0.55


def no_scan(dst_host_count: int, dst_host_srv_count: int, diff: float, flag: str) -> bool:
    """Not a sweep over hosts or ports."""
    spread = dst_host_count / (1 + dst_host_srv_count)
    return flag == "SF" and spread * (0.5 + diff) < 6.0


PREDICATES = (
    RowPredicate("no_flood", ("count", "srv_count", "same_srv_rate", "serror_rate"), no_flood),
    RowPredicate("odd_bytes", ("service", "src_bytes", "dst_bytes"), odd_bytes),
    RowPredicate(
        "far_from_typical",
        (
            "dst_host_same_srv_rate", "dst_host_diff_srv_rate", "dst_host_same_src_port_rate",
            "dst_host_serror_rate", "dst_host_rerror_rate",
        ),
        far_from_typical,
    ),
    RowPredicate(
        "no_scan",
        ("dst_host_count", "dst_host_srv_count", "dst_host_diff_srv_rate", "flag"),
        no_scan,
    ),
)  # fmt: skip
