"""A pattern as Java reads it, for RE2: what both find in awkward texts, and what is refused."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from meaning import computed
from querymesh.errors import UnsupportedError
from querymesh.query.functions import java_regex
from querymesh.query.functions.java_regex import from_java
from querymesh.query.functions.regex import to_java

TEXTS = [
    "", "a", "b", "ab", "abc", "ABC", "aB", "a b", "a\n", "a\r\n", "a\r", "a\n\n", "\n", "\r\n",
    "a\u2028", "a\u0085", "a\vb", "a\fb", "a\tb", "a\nb", "é", "É", "ſ", "s", "S", "K", "\u212a",
    "k", "İ", "i", "ı", "😀", "a😀b", "1", "٣", "_", "-", "]", "[", "\\", "^", "a.b", "a+b", "$",
    "{2}", "aaa", "aabb", "x\u00a0y", "x y", "/index.php", "/index.php\n", "../../etc", "&&",
    "a&&b",
]  # fmt: skip
PATTERNS = [
    "^a", "a$", "a.b", "^$", "^.$", ".", "(?s).", "(?s)^.+$", r"\s", r"\S$", r"\d", r"\D", r"\w+$",
    r"\W", "(?i)s", "(?i)k", "(?i)[a-c]", "(?i)[^a-c]", "(?i)É", "(?i)i", "(?-i)a", "(?i:a)b",
    "a(?i)b", "(a|b$)", "^(a|b)+$", "a{2}", "a{2,}", "a{1,2}?b", "[\\]]", "[\\[]", "[a-]", "[-a]",
    r"[\w.-]+", r"[^\s]", r"[\d\s]", r"\.php$", r"(\.\./)+", r"\x41", r"\u0041", r"\x{1F600}", "😀",
    "[😀-🙏]", r"\\", r"\^", r"\$", r"\{2\}", r"a\z", r"\Aa", "a|", "", "(?<n>a)b", "[&]", "a&&b",
    r"\t", r"[\t\n]", "[^a]*$", r"\s*$", r"a\s+$", "(?s)a.*$", "[a^]", "(?:ab)*c", r"\e",
    "ab?c?$", "(a$)", "((a|b)$)",
]  # fmt: skip
ATOMS = ["a", "b", "é", "S", ".", r"\s", r"\w", r"\d", "[a-c]", "[^a]", r"\n", r"\r",
         "(?:a|b)", "(?i:s)"]  # fmt: skip
REPEATS = ["", "", "", "*", "+", "?", "{2}", "*?", "+?"]


def random_patterns(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        parts = [rng.choice(ATOMS) + rng.choice(REPEATS) for _ in range(rng.randint(1, 4))]
        body = "".join(parts) + rng.choice(["", "|" + rng.choice(ATOMS)])
        flags = rng.choice(["", "", "(?i)", "(?s)", "(?is)"])
        made.append(flags + rng.choice(["", "^"]) + body + rng.choice(["", "$", "$"]))
    return made


def readable(pattern: str) -> bool:
    try:
        return bool(from_java(pattern))
    except UnsupportedError:
        return False


@pytest.mark.spark
def test_re2_finds_what_java_finds(spark: SparkSession) -> None:
    patterns = PATTERNS + [p for p in random_patterns(1, 250) if readable(p)]
    assert len(patterns) > 200
    texts = pa.array(TEXTS)
    frame = spark.createDataFrame(pa.table({"id": range(len(TEXTS)), "t": texts})).coalesce(1)
    java = [F.col("t").rlike(pattern).alias(f"p{i}") for i, pattern in enumerate(patterns)]
    again = [F.col("t").rlike(to_java(from_java(p))).alias(f"q{i}") for i, p in enumerate(patterns)]
    answer = frame.select("id", *java, *again).toArrow().sort_by("id")
    wrong = []
    for i, pattern in enumerate(patterns):
        ours = pc.match_substring_regex(texts, from_java(pattern)).to_pylist()
        for who in ("p", "q"):
            theirs = answer[f"{who}{i}"].to_pylist()
            wrong += [
                (pattern, who, text, mine, java)
                for text, mine, java in zip(TEXTS, ours, theirs, strict=True)
                if mine != java
            ][:1]
    assert not wrong


@pytest.mark.parametrize(
    "pattern",
    [r"\bb", r"\B", "(?m)^a", "(?x)a b", "(?u)é", "a++", "a*+", "(?=a)", "(?<!a)b", r"(a)\1",
     r"\Z", r"\p{L}", r"\Qa\E", r"\h", r"\R", r"\v", "[a-z&&[^b]]", "[[a]]", "[]a]", "a{", "}", "]",
     "(a$)b", "(?s)^.$", r"\r$", r"(\r|a)$", r"x\s?$", "a$b", "$*", "^*", "(a", "a)", "[a", "[b-a]",
     r"[\d-a]", r"\012", r"\u41", "(?i)*", "a**", "\\"],
)  # fmt: skip
def test_what_re2_cannot_read_as_java_does_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="as Spark reads it"):
        from_java(pattern)


def test_a_query_has_javas_meaning_of_a_pattern_and_keeps_its_text() -> None:
    texts = pa.array(["a\r\n", "a\n", "ſ", "x\vy"])
    assert computed(r"t RLIKE r'a$'", t=texts) == [True, True, False, False]
    assert computed(r"t RLIKE '(?i)s'", t=texts) == [False, False, False, False]
    assert computed(r"t RLIKE r'x\sy'", t=texts) == [False, False, False, True]


def test_reading_a_pattern_twice_changes_nothing() -> None:
    for pattern in PATTERNS:
        once = from_java(pattern)
        found = [pc.match_substring_regex(pa.array(TEXTS), p) for p in (once, from_java(once))]
        assert found[0] == found[1], pattern


def test_spark_is_given_what_was_written():
    """Java is faster by `$` than by the choice that RE2 needs for it."""
    for pattern in ("(tokyo|oregon)$", r"^\d+\s", "(?i)union.*select"):
        assert java_regex.to_java(from_java(pattern)) == pattern
    assert java_regex.to_java("[[:digit:]]+") == "[0-9]+", (
        "what was written for RE2 is written for Java"
    )
