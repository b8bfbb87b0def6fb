"""The demo's data: ticks of stocks in sectors that behave differently, news and street research.

Everything follows from a seed. Each sector has a temper: how often its stocks are bullish, spoken
well of, traded in unusual volume, in the news and in research. A tick's text columns are made so
that the predicates find that by really looking.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from querymesh.demo.predicates import BAD_WORDS, GOOD_WORDS
from querymesh.spark.context import SentTables, parallelism

SQL = """SELECT s.company_name, s.symbol, s.price, news.headline, research.analyst
FROM Stock s, News news, StreetResearch research
WHERE matches_bullish(s.data)
  AND s.sector = news.sector AND s.region = news.region
  AND s.company_name = research.company_name
  AND upbeat(s.commentary)
  AND unusual_volume(s.volumes)
  AND s.price >= 5"""


@dataclass(frozen=True, slots=True)
class Temper:
    """How a sector behaves: shares of its ticks, of its regions, of its companies."""

    weight: float
    bullish: float
    upbeat: float
    unusual: float
    in_news: float
    researched: float


SECTORS = {
    # A poor harvest: much written about, hardly ever bullish (the paper's example).
    "Agriculture": Temper(
        0.30, bullish=0.04, upbeat=0.70, unusual=0.85, in_news=1.0, researched=0.95
    ),
    "Technology": Temper(
        0.25, bullish=0.85, upbeat=0.80, unusual=0.05, in_news=0.75, researched=0.90
    ),
    "Energy": Temper(0.20, bullish=0.75, upbeat=0.05, unusual=0.80, in_news=1.0, researched=0.85),
    "Health": Temper(0.15, bullish=0.80, upbeat=0.75, unusual=0.70, in_news=0.12, researched=0.80),
    "Finance": Temper(0.10, bullish=0.50, upbeat=0.50, unusual=0.50, in_news=0.50, researched=0.50),
}
REGIONS = ("Africa", "Americas", "Asia", "Europe", "Gulf", "Nordics", "Oceania", "Pacific")
COMPANIES_PER_SECTOR = 80
PRICES = 36
POOL = 8_000

_BULLISH_SHAPES = ("ddddddduuuuudddddduuuuuuuu", "uuuuuuuuddduuuuuuu")
_PLAIN = ("the", "quarter", "outlook", "market", "shares", "guidance", "board", "plan", "sales")

TICK = pa.schema(
    [
        ("symbol", pa.string()),
        ("company_name", pa.string()),
        ("sector", pa.string()),
        ("region", pa.string()),
        ("price", pa.float64()),
        ("data", pa.string()),
        ("volumes", pa.string()),
        ("commentary", pa.string()),
    ]
)
TICK_DDL = ", ".join(f"{f.name} {'double' if f.name == 'price' else 'string'}" for f in TICK)


def ticks(rows: int, seed: int) -> pa.Table:
    """A table of so many ticks."""
    rng = np.random.default_rng(seed)
    names = list(SECTORS)
    weights = [temper.weight for temper in SECTORS.values()]
    records = []
    for sector in rng.choice(names, rows, p=weights):
        temper = SECTORS[str(sector)]
        number = int(rng.integers(COMPANIES_PER_SECTOR))
        start = float(np.round(rng.lognormal(3.6, 0.8), 2))
        records.append(
            {
                "symbol": f"{sector[:2].upper()}{number:02d}",
                "company_name": _company(str(sector), number),
                "sector": str(sector),
                "region": REGIONS[int(rng.integers(len(REGIONS)))],
                "price": start,
                "data": _history(start, bool(rng.random() < temper.bullish), rng),
                "volumes": _volumes(bool(rng.random() < temper.unusual), rng),
                "commentary": _commentary(bool(rng.random() < temper.upbeat), rng),
            }
        )
    return pa.Table.from_pylist(records, TICK)


def news(seed: int) -> pa.Table:
    """Headlines by sector and region: none, or up to three."""
    rng = np.random.default_rng(seed)
    records = [
        {"sector": sector, "region": region, "headline": f"{sector} in {region}, part {part}"}
        for sector, temper in SECTORS.items()
        for region in REGIONS
        if rng.random() < temper.in_news
        for part in range(1, 1 + int(rng.integers(1, 4)))
    ]
    return pa.Table.from_pylist(records)


def research(seed: int) -> pa.Table:
    """Analysts by company: none, or up to two."""
    rng = np.random.default_rng(seed)
    records = [
        {"company_name": _company(sector, number), "analyst": f"analyst {int(analyst)}"}
        for sector, temper in SECTORS.items()
        for number in range(COMPANIES_PER_SECTOR)
        if rng.random() < temper.researched
        for analyst in rng.choice(40, int(rng.integers(1, 3)), replace=False)
    ]
    return pa.Table.from_pylist(records)


def tick_stream(spark: SparkSession, rows_per_batch: int, seed: int) -> DataFrame:
    """Ticks as a stream: Spark's deterministic micro-batch source picks from a pool of ticks."""
    sent = SentTables(spark, {"ticks": ticks(POOL, seed)})
    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows_per_batch)
        .option("numPartitions", parallelism(spark))
        .load()
    )

    def pick(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pool = sent()["ticks"].to_batches()[0]
        for batch in batches:
            value = batch.column("value").to_numpy(zero_copy_only=False)
            yield pool.take(pa.array(value * 7919 % POOL))

    return numbers.mapInArrow(pick, TICK_DDL)


def _company(sector: str, number: int) -> str:
    return f"{sector} Works {number}"


def _history(start: float, bullish: bool, rng: np.random.Generator) -> str:
    """Prices as text; a bullish history ends in a pattern, another one swings without any."""
    if bullish:
        moves = list(_BULLISH_SHAPES[int(rng.integers(len(_BULLISH_SHAPES)))])
    else:
        moves = list("ddduu" * (PRICES // 5))
    moves = ["d", "u"] * ((PRICES - len(moves)) // 2) + moves
    step = np.where(np.array(moves) == "u", 0.006, -0.006) * rng.uniform(0.8, 1.2, len(moves))
    return " ".join(f"{price:.3f}" for price in start * np.cumprod(1 + step))


def _volumes(unusual: bool, rng: np.random.Generator) -> str:
    usual = rng.normal(50_000, 4_000, 24).astype(int)
    usual[-1] = 90_000 if unusual else 51_000
    return " ".join(map(str, usual))


def _commentary(upbeat: bool, rng: np.random.Generator) -> str:
    better, worse = (GOOD_WORDS, BAD_WORDS) if upbeat else (BAD_WORDS, GOOD_WORDS)
    words = [
        kind[i]
        for kind, count in ((_PLAIN, 48), (better, 5), (worse, 3))
        for i in rng.integers(len(kind), size=count)
    ]
    return " ".join(words[i] for i in rng.permutation(len(words)))
