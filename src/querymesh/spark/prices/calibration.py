"""The prices of Catalyst's expressions, measured: `python -m querymesh.spark.prices.calibration`.

It prints the table that `cost/catalyst_prices.py` ships, and what patterns of the forms that
`cost/regex_cost.py` tells apart cost, beside what that module says. Each kind of node is timed in a
condition on texts of three lengths; the line through them is its price a row and a byte, less what
is known already of the other nodes in the condition.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh.cost.catalyst_cost import Price
from querymesh.cost.regex_cost import pattern_cost
from querymesh.spark.prices.catalyst_costs import timed_us

LENGTHS = (20, 80, 320)
ROWS = 1_000
BUDGET_S, PATTERNS_S, TURNS = 60.0, 20.0, 150
"""For all conditions at one length: long enough for Java's second compiler."""

WORDS = ("index", "shop", "images", "user", "login", "search", "item", "cart", "blog", "admin")


@dataclass(frozen=True)
class Trial:
    """A condition that shows the price of one kind, and the other kinds that are in it."""

    kind: str
    condition: str
    others: tuple[str, ...] = ()


def _trials() -> Iterator[Trial]:
    yield Trial("EqualTo", "i = 5")
    yield Trial("EqualTo text", "s = 'somewhere'")
    for kind, condition in _TEXT_TESTS.items():
        yield Trial(kind, condition)
    for kind, text in _TEXTS.items():
        yield Trial(kind, f"{text} = 'somewhere'", ("EqualTo text",))
    for kind, number in _NUMBERS.items():
        yield Trial(kind, f"{number} = 5", ("EqualTo",))
    for kind, condition in _CONDITIONS.items():
        yield Trial(kind, condition, ("EqualTo",))


_TEXT_TESTS = {
    "Contains": "s LIKE '%nowhere%'",
    "StartsWith": "s LIKE 'nowhere%'",
    "EndsWith": "s LIKE '%nowhere'",
    "Like": "s LIKE 'no%wh_re'",
    "RLike": "s RLIKE '^nowhere'",
}
_TEXTS = {
    "Lower": "lower(s)",
    "Upper": "upper(s)",
    "Substring": "substring(s, 3, 8)",
    "StringTrim": "trim(s)",
    "StringTrimLeft": "ltrim(s)",
    "StringTrimRight": "rtrim(s)",
    "Concat": "concat(s, '-', s)",
    "ConcatWs": "concat_ws('-', s, s)",
    "StringReplace": "replace(s, '/', '_')",
    "StringTranslate": "translate(s, '/-', '__')",
    "Reverse": "reverse(s)",
    "InitCap": "initcap(s)",
    "SubstringIndex": "substring_index(s, '/', 2)",
    "RegExpExtract": "regexp_extract(s, '^(nowhere)', 1)",
    "RegExpReplace": "regexp_replace(s, '^nowhere', '')",
    "ParseUrl": "try_parse_url(concat('http://host/', s), 'QUERY')",
    "GetJsonObject": "get_json_object(js, '$.name')",
    "Md5": "md5(s)",
    "Sha1": "sha1(s)",
    "Sha2": "sha2(s, 256)",
    "Base64": "base64(s)",
    "Hex": "hex(s)",
    "DateFormatClass": "date_format(ts, 'yyyy-MM-dd')",
    "FromUnixTime": "from_unixtime(i)",
    "Cast to text": "CAST(i AS STRING)",
    "Coalesce": "coalesce(t, s)",
    "GetArrayItem": "words[2]",
    "ElementAt": "element_at(words, 3)",
    "GetMapValue": "m['b']",
    "GetStructField": "st.text",
    "If": "if(i > 3, t, s)",
}
_NUMBERS = {
    "Length": "length(s)",
    "OctetLength": "octet_length(s)",
    "StringInstr": "instr(s, 'nowhere')",
    "StringLocate": "locate('nowhere', s)",
    "Ascii": "ascii(s)",
    "Levenshtein": "levenshtein(s, 'somewhere')",
    "Crc32": "crc32(s)",
    "XxHash64": "xxhash64(s)",
    "Murmur3Hash": "hash(s)",
    "StringSplit": "size(split(s, '/'))",
    "JsonToStructs": "from_json(js, 'id INT, name STRING').id",
    "Cast text to number": "CAST(n AS INT)",
    "Cast": "CAST(i AS INT)",
    "Add": "i + j",
    "Subtract": "i - j",
    "Multiply": "i * 3",
    "Divide": "i / 7",
    "IntegralDivide": "i DIV 7",
    "Remainder": "i % 7",
    "Pmod": "pmod(i, 7)",
    "Abs": "abs(i)",
    "UnaryMinus": "-i",
    "Round": "round(d, 1)",
    "Sqrt": "sqrt(d)",
    "Pow": "pow(d, 2)",
    "Exp": "exp(d)",
    "Log": "ln(d)",
    "Floor": "floor(d)",
    "Ceil": "ceil(d)",
    "BitwiseAnd": "(i & 255)",
    "Greatest": "greatest(i, j)",
    "Least": "least(i, j)",
    "Year": "year(day)",
    "Month": "month(day)",
    "DayOfMonth": "day(day)",
    "DayOfWeek": "dayofweek(day)",
    "Hour": "hour(ts)",
    "Minute": "minute(ts)",
    "DateDiff": "datediff(day, DATE '2020-01-01')",
    "UnixTimestamp": "unix_timestamp(ts)",
    "Size": "size(numbers)",
    "CaseWhen": "CASE WHEN i = 3 THEN 1 WHEN i = 4 THEN 2 ELSE 5 END",
}
_CONDITIONS = {
    "And": "i = 5 AND j = 5",
    "Or": "i = 5 OR j = 5",
    "Not": "NOT (i = 5)",
    "IsNull": "t IS NULL",
    "IsNotNull": "t IS NOT NULL",
    "Cast text to time": "CAST(stamp AS TIMESTAMP) = ts",
    "ParseToTimestamp": "to_timestamp(stamp, 'yyyy-MM-dd HH:mm:ss') = ts",
    "ParseToDate": "to_date(stamp) = day",
    "DateAdd": "date_add(day, 3) = day",
    "DateSub": "date_sub(day, 3) = day",
    "TruncTimestamp": "date_trunc('HOUR', ts) = ts",
    "TimestampAddInterval": "ts + INTERVAL 1 DAY = ts",
    "ArrayContains": "array_contains(numbers, 77)",
    "ArrayExists": "exists(numbers, x -> x > 1000)",
    "ArrayForAll": "forall(numbers, x -> x < 1000)",
    "ArrayFilter": "size(filter(numbers, x -> x > 1000)) = 5",
    "ArrayTransform": "size(transform(numbers, x -> x + 1)) = 5",
    "ArrayAggregate": "aggregate(numbers, 0L, (a, x) -> a + x) = 5",
}

FREE = (
    "AttributeReference", "Literal", "Alias", "LambdaFunction", "NamedLambdaVariable", "With",
    "CommonExpressionDef", "CommonExpressionRef", "Between", "DatetimeSub", "CurrentTimestamp",
    "CurrentDate", "KnownNotNull", "KnownFloatingPointNormalized",
)  # fmt: skip


def measured_prices(session: SparkSession) -> dict[str, Price]:
    """The price of every kind, on this machine."""
    trials = list(_trials())
    conditions = [trial.condition for trial in trials]
    times = []
    for length in LENGTHS:
        found = timed_us(session, texts(length), conditions, BUDGET_S, TURNS)
        if found is None:
            raise RuntimeError("Spark did not evaluate the conditions of the calibration")
        times.append(found)
    by_length = np.array(times)
    prices = {kind: Price(0.0) for kind in FREE}
    for number, trial in enumerate(trials):
        prices[trial.kind] = _line(by_length[:, number], trial, prices)
    return prices


PATTERNS = (
    "^/nowhere", "nowhere", "(?i)nowhere", "[?&](id|user)=[0-9]+", "[0-9]{6}", r"\d+zz",
    "(select|union|insert|drop)", "%27|--|;", r"(\w+)@(\w+)", "^.*zz.*$", "a.*b.*zz", ".*zz",
)  # fmt: skip
"""One or two patterns of each form; none matches the texts."""


def measured_patterns(session: SparkSession) -> dict[str, tuple[float, ...]]:
    """What patterns cost on texts of each length, less the price of a pattern that is anchored."""
    conditions = [F.col("s").rlike(pattern) for pattern in ("^nowhere", *PATTERNS)]
    times = []
    for length in LENGTHS:
        found = timed_us(session, texts(length).select(["s"]), conditions, PATTERNS_S, TURNS)
        if found is None:
            raise RuntimeError("Spark did not evaluate the patterns of the calibration")
        times.append(found[1:] - found[0])
    return dict(zip(PATTERNS, map(tuple, np.array(times).T.tolist()), strict=True))


def _line(us: np.ndarray, trial: Trial, known: Mapping[str, Price]) -> Price:
    """The line through the times at the three lengths, less the prices of the other kinds."""
    rest = [us_at - sum(known[kind].us(length) for kind in trial.others)
            for us_at, length in zip(us, LENGTHS, strict=True)]  # fmt: skip
    slope, base = np.polyfit(LENGTHS, rest, 1)
    if slope < LEAST_SLOPE or not _READS_TEXT.search(trial.condition):
        slope, base = 0.0, float(np.median(rest))
    return Price(round(max(0.001, float(base)), 4), round(float(slope), 5))


LEAST_SLOPE = 1e-4
"""A price a byte below this is the noise of measuring."""

_READS_TEXT = re.compile(r"\b(s|js|st)\b")
"""Of the columns, those whose length is varied."""


def texts(length: int, rows: int = ROWS) -> pa.Table:
    """Rows with texts of a length, and other types beside."""
    rng = random.Random(1)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    stamps = [start + timedelta(minutes=rng.randrange(500_000)) for _ in range(rows)]
    numbers = pa.array([rng.randrange(10**6) for _ in range(rows)])
    written = [_text(rng, length) for _ in range(rows)]
    return pa.table(
        {
            "s": written,
            "t": pa.array([None if rng.random() < 0.5 else "x" for _ in range(rows)], pa.string()),
            "js": [json.dumps({"id": n, "path": _text(rng, max(1, length - 30)), "name": "a"})
                   for n in range(rows)],
            "n": [str(rng.randrange(10**6)) for _ in range(rows)],
            "stamp": [stamp.strftime("%Y-%m-%d %H:%M:%S") for stamp in stamps],
            "ts": pa.array(stamps, pa.timestamp("us", "UTC")),
            "day": pa.array([stamp.date() for stamp in stamps], pa.date32()),
            "i": numbers,
            "j": pa.array([rng.randrange(10**6) for _ in range(rows)]),
            "d": pa.array([rng.random() * 100 for _ in range(rows)]),
            "numbers": pa.array([[rng.randrange(100) for _ in range(8)] for _ in range(rows)]),
            "words": pa.array([[rng.choice(WORDS) for _ in range(8)] for _ in range(rows)]),
            "m": pa.array([[("a", "x"), ("b", "y")] for _ in range(rows)],
                          pa.map_(pa.string(), pa.string())),
            "st": pa.array([{"text": text, "number": n} for n, text in enumerate(written)]),
        }
    )  # fmt: skip


def some_text(length: int) -> str:
    """A text such as web servers log."""
    return _text(random.Random(1), length)


def _text(rng: random.Random, length: int) -> str:
    found = "/"
    while len(found) < length:
        found += f"{rng.choice(WORDS)}{rng.choice('/?&=.-_')}{rng.randrange(1000)}"
    return found[:length]


def main() -> None:
    """Print the table for `cost/catalyst_prices.py`."""
    from querymesh.spark.session import local_session

    session = local_session()
    for pattern, us in measured_patterns(session).items():
        said = [pattern_cost(pattern).us(length) for length in LENGTHS]
        pairs = [f"{a:8.3f} ({b:.3f})" for a, b in zip(us, said, strict=True)]
        print(f"# {pattern:28}", *pairs)
    for kind, price in measured_prices(session).items():
        print(f'    "{kind}": Price({price.row_us}, {price.byte_us}),')


if __name__ == "__main__":
    main()
