import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from querymesh.errors import QueryError
from querymesh.query.expr import Call, Column, Literal
from querymesh.query.functions.regex import check, to_java
from querymesh.query.render import spark_sql
from regex_cases import ATOMS, CLASSES, STRINGS, accepted, patterns
from soak import other_cases_each_time


@other_cases_each_time(4)
@given(st.lists(patterns, min_size=80, max_size=80))
def test_java_finds_what_re2_finds(spark: SparkSession, found: list[str]) -> None:
    constructs = {flag + each for flag in ("", "(?i)") for each in ATOMS + CLASSES}
    used = [pattern for pattern in {*constructs, *found} if accepted(pattern)]
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
