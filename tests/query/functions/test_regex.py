import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from querymesh.errors import QueryError
from querymesh.query.expr import Call, Column, Literal
from querymesh.query.functions.regex import check, to_java
from querymesh.query.render import spark_sql

STRINGS = [
    "", "a", "b", "ab", "ba", "aab", "A", "AB", "a\n", "\na", "a\nb", "\n", "a b", "a\tb", "a\x0bb",
    "a-b", "[a]", "a]", "&", "&&", "a&&b", "^", "$", ".", "\\", "é", "É", "aé", "ß", "K", "\u212a",
    "ſ", "1", "a1", "_", "日本", "😀", "a😀b", "{", "a{2}", "aa", "x\r\ny", "\r", "\u2028",
    "\u0085",
]  # fmt: skip

CLASSES = [
    "[a-c]", "[^a]", "[]a]", "[^]a]", "[a-]", "[-a]", "[[]", "[a&&b]", "[&]", "[[:alpha:]]",
    "[[:^alpha:]x]", "[[:space:][:digit:]]", "[^[:punct:]]", r"[\d\s]", r"[\W]", r"[^\S]",
    r"[\]\\]", r"[\x61-\x{63}]", r"[\n]", "[é-ý]", r"[\pL]", r"[^\p{Lu}]", r"[\^$.]", "[#-&]",
    r"[\-a]",
]  # fmt: skip
ATOMS = [
    "a", "b", "A", "é", "日", ".", "^", "$", r"\A", r"\z", r"\b", r"\d", r"\D", r"\w", r"\W",
    r"\s", r"\S", r"\.", r"\$", r"\\", r"\n", r"\t", r"\v", r"\x41", r"\x{1F600}", r"\101", r"\pL",
    r"\PL", r"\p{Greek}", r"\p{^Lu}", r"\Qa.b\E", r"\Q[\E", "]", "}", "{", "a{", "{,2}", "&",
    "#", "-", " ", "\n", "(?i)", "(?s)", "(?m)", "(?U)", "(?-i)", "(?is)", "(?m-s)",
]  # fmt: skip
atoms = st.sampled_from(ATOMS * 2 + CLASSES)
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(
            st.sampled_from(["(", "(?:", "(?i:", "(?s:", "(?m:", "(?P<n_1>", "(?U:", "(?i-s:"]),
            inner,
        ).map(lambda pair: f"{pair[0]}{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{0,2}", "{1,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


def accepted(pattern: str) -> bool:
    try:
        check(pattern)
    except QueryError:
        return False
    return True


@settings(
    max_examples=4,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(patterns, min_size=80, max_size=80))
def test_java_finds_what_re2_finds(spark: SparkSession, found: list[str]) -> None:
    used = [pattern for pattern in {*ATOMS, *CLASSES, *found} if accepted(pattern)]
    frame = spark.createDataFrame(pa.table({"s": STRINGS}))
    column = Column(None, "s")
    texts = [
        f"{spark_sql(Call('rlike', (column, Literal(pattern))))} AS c{i}"
        for i, pattern in enumerate(used)
    ]
    answer = frame.coalesce(1).selectExpr("s", *texts).toArrow()
    wrong = []
    for i, pattern in enumerate(used):
        mine = pc.match_substring_regex(answer["s"], pattern)
        for string, a, b in zip(answer["s"], mine, answer[f"c{i}"], strict=True):
            if a != b:
                wrong.append(f"{pattern!r} as {to_java(pattern)!r} on {string.as_py()!r}: RE2 {a}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("pattern", ["(?=a)", "(?<!a)b", r"(a)\1", "a**", "(", "[", "a{2,1}"])
def test_a_pattern_that_re2_refuses_is_named_with_a_remedy(pattern: str) -> None:
    with pytest.raises(
        QueryError, match=r"look-around and back-references.*qm\.predicate"
    ) as error:
        check(pattern)
    assert repr(pattern) in str(error.value)


@pytest.mark.parametrize("pattern", [r"a\C", r"\Ba"])
def test_escapes_that_see_bytes_are_refused(pattern: str) -> None:
    with pytest.raises(QueryError, match="byte"):
        check(pattern)
