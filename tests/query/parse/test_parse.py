import pickle
import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle

from querymesh.errors import QueryError, QueryMeshError, UnsupportedError
from querymesh.query.expr import Call, Column, Literal, SparkText, UserCall, part_name
from querymesh.query.parse.query import query, where
from querymesh.query.predicate.decorators import predicate
from querymesh.query.render import to_text

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string())])


def condition(sql: str, **functions: object) -> str:
    return " / ".join(to_text(c) for c in where([sql], functions=functions).conjuncts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sql",
    [
        "port IN (22, 445)",
        "lower(name) LIKE 'a%'",
        "s NOT LIKE 'a%'",
        "s NOT ILIKE 'a%'",
        "s NOT RLIKE 'a+'",
        "a NOT IN (1, 2)",
        "a NOT BETWEEN 1 AND 2",
        "a BETWEEN 1 AND b + 2",
        "a IS NULL",
        "a IS NOT NULL",
        "a <=> b",
        "NOT (a = 1 OR b = 2)",
        "a = 1 OR b = 2 OR a > b",
        "(a + b) * 2 - -a > a - (b - 1)",
        "a DIV 2 = b % 3",
        "CASE WHEN a = 1 THEN TRUE ELSE FALSE END",
        "if(a > 1, b, 2) = coalesce(a, b)",
        "CAST(s AS BIGINT) = 1",
        "d > DATE '2024-01-31'",
        "t > TIMESTAMP '2024-01-31 23:59:59'",
        "CAST('5' AS BIGINT) = CAST(TRUE AS BIGINT)",
        "s = 'it''s \\\\ here'",
        "x < 0.5",
        "NULL",
        "`odd name` = 1",
        "substring(s, 1, 2) = 'ab'",
    ],
)
def test_conditions_come_back_as_they_were_written(sql: str) -> None:
    assert condition(sql) == sql


@pytest.mark.parametrize(
    ("sql", "normal"),
    [
        ("a==1", "a = 1"),
        ("a!=1", "a <> 1"),
        ("NOT a IS NULL", "a IS NOT NULL"),
        ("a IS DISTINCT FROM b", "NOT a <=> b"),
        ("ok IS NOT TRUE", "NOT ok <=> TRUE"),
        ("s || 'x' || s = 'y'", "concat(s, 'x', s) = 'y'"),
        ("nvl(a, 1) = 5L", "coalesce(a, 1) = 5"),
        ("a = 2.5D", "a = 2.5D"),
        ("a = 25e-1", "a = 2.5D"),
        ("a = 2.50", "a = 2.50"),
        ("a = 9223372036854775808", "a = 9223372036854775808"),
        ("CAST(a AS NUMERIC(5)) = 1", "CAST(a AS DECIMAL(5,0)) = 1"),
        ("a = -9223372036854775808", "a = -9223372036854775808"),
        ("a = 9223372036854775807", "a = 9223372036854775807"),
        ("CASE a WHEN 1 THEN TRUE END", "CASE WHEN a = 1 THEN TRUE END"),
        ("s LIKE '50/%' ESCAPE '/'", "s LIKE '50\\\\%'"),
        ("s NOT LIKE '50/%' ESCAPE '/'", "s NOT LIKE '50\\\\%'"),
        ("s RLIKE r'\\d+'", "s RLIKE '\\\\d+'"),
        ("s RLIKE '\\\\d+'", "s RLIKE '\\\\d+'"),
        ("regexp_like(s, 'a')", "s RLIKE 'a'"),
        ("isnotnull(a)", "a IS NOT NULL"),
        ('s = "double"', "s = 'double'"),
        ("mod(a, 2) = 1", "a % 2 = 1"),
    ],
)
def test_other_spellings_become_the_same_expression(sql: str, normal: str) -> None:
    assert condition(sql) == normal


def test_top_level_ands_are_split_however_they_nest() -> None:
    asked = query(
        "SELECT * FROM t JOIN u ON t.a = u.a AND t.b > 1 WHERE (t.c = 1 AND (u.d = 2 AND NOT u.e))"
    )
    assert [to_text(c, qualified=True) for c in asked.conjuncts] == [
        "t.a = u.a", "t.b > 1", "t.c = 1", "u.d = 2", "NOT u.e",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("joins", "conditions"),
    [
        ("JOIN u USING (k)", ["t.k = u.k"]),
        ("JOIN u USING (k, m)", ["t.k = u.k", "t.m = u.m"]),
        ("JOIN u USING (k) JOIN v USING (k)", ["t.k = u.k", "t.k = v.k"]),
        (
            "JOIN u USING (k) JOIN w ON w.a = t.a JOIN v USING (k)",
            ["t.k = u.k", "w.a = t.a", "t.k = v.k"],
        ),
    ],
)
def test_using_is_an_equality_with_the_first_that_has_the_column(
    joins: str, conditions: list[str]
) -> None:
    asked = query(f"SELECT * FROM t {joins}")
    assert [to_text(c, qualified=True) for c in asked.conjuncts] == conditions


@pytest.mark.parametrize(
    "joins", ["JOIN u USING (k) JOIN v USING (m)", "JOIN u ON t.a = u.a JOIN v USING (m)"]
)
def test_using_beside_several_relations_is_refused(joins: str) -> None:
    with pytest.raises(UnsupportedError, match=r"USING \(m\) beside several relations: write ON"):
        query(f"SELECT * FROM t {joins}")


def test_outputs_get_names() -> None:
    asked = query("SELECT t.a, a + 1, lower(s) AS low, t.*, * FROM t")
    assert asked.outputs is not None
    assert [output.name for output in asked.outputs] == ["a", "a + 1", "low", "*", "*"]
    assert query("SELECT * FROM t").outputs is None
    assert query("SELECT * FROM t").conjuncts == ()


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("SELECT a FROM t WHERE a = = 3", 1, 27),
        ("SELECT a\nFROM t\nWHERE (a = 1", 3, 12),
        ("SELECT a FROM t\nWHERE a = 'x", 2, 11),
        ("SELECT 'x", 1, 8),
        ("SELECT a FROM t WHERE a >", 1, 25),
        ("SELECT a FROM t WHERE a = 1 b", 1, 29),
    ],
)
def test_sql_that_does_not_parse_shows_where(sql: str, line: int, column: int) -> None:
    with pytest.raises(QueryError) as error:
        query(sql)
    text = str(error.value)
    assert f"line {line}, column {column}" in text
    shown, caret = text.splitlines()[1:]
    assert shown.strip() == sql.splitlines()[line - 1].strip()
    assert caret.index("^") == column + 1


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "empty"),
        ("SELECT 1", "no FROM"),
        ("SHOW TABLES", "a query is a SELECT"),
        ("SELECT a FROM t, T", "stands twice"),
    ],
)
def test_a_query_without_meaning_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        query(sql)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("lenght(s) = 1", "unknown function lenght: did you mean 'length'"),
        ("s LIKE s", "string literal"),
        ("s LIKE 'a\\\\b'", "must be followed by"),
        ("s RLIKE '(?=a)'", "look-around"),
        ("if(a, 1)", "takes 3 arguments, not 2"),
        (f"a = {'9' * 39}", r"38 digits of a DECIMAL; write 1e\+39D for"),
        (f"a = -{'9' * 38}.5", "38 digits of a DECIMAL"),
        ("a = 1e400", "beyond DOUBLE"),
        ("CAST(a AS DECIMAL(39, 2)) = 1", "1 to 38 digits"),
        ("CAST(a AS DECIMAL(2, 3)) = 1", "1 to 38 digits"),
        ("d = DATE 'soon'", "'soon' is no DATE"),
        ("t.a.b > 1", "nested"),
        ("a BETWEEN SYMMETRIC 2 AND 1", "not supported"),
        ("s LIKE ANY ('a', 'b')", "ANY"),
        ("a & 1 = 1", "&"),
        ("CAST(a AS BINARY) = b", "cast to a number, DECIMAL"),
        ("s = INTERVAL 1 DAY", "INTERVAL"),
    ],
)
def test_what_is_not_understood_waits_for_spark_and_is_refused_without(
    condition: str, said: str
) -> None:
    filtered = query(f"SELECT a FROM t WHERE a > 1 AND ({condition})")
    selected = query(f"SELECT {condition} AS c FROM t")
    assert selected.outputs is not None
    for asked, left in ((filtered, filtered.conjuncts[1]), (selected, selected.outputs[0].expr)):
        assert isinstance(left, SparkText)
        assert left.sql == condition, "as it was written"
        with pytest.raises(QueryMeshError, match=said):
            asked.bind({"t": SCHEMA})


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT a FROM t; SELECT b FROM t", "one statement"),
        ("SELECT a FROM t UNION SELECT b FROM u", "UNION"),
        ("WITH c AS (SELECT 1) SELECT * FROM c", "WITH"),
        ("SELECT a FROM t LEFT JOIN u ON t.a = u.a", "LEFT JOIN"),
        ("SELECT a FROM t LEFT SEMI JOIN u ON t.a = u.a", "SEMI JOIN"),
        ("SELECT a FROM t NATURAL JOIN u", "NATURAL JOIN"),
        ("SELECT a FROM t ORDER BY a", "ORDER BY"),
        ("SELECT a FROM t LIMIT 3", "LIMIT"),
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
        ("SELECT sum(a) OVER (PARTITION BY b) FROM t", "OVER"),
        ("SELECT a FROM (SELECT 1) t", "in FROM"),
        ("SELECT a FROM t WHERE a IN (SELECT 1)", "subquery"),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1)", "subquery"),
        ("SELECT (SELECT 1) FROM t", "subquery"),
        ("SELECT a FROM t LATERAL VIEW explode(x) y", "LATERAL"),
        ("SELECT * EXCEPT (a) FROM t", "EXCEPT"),
        ("SELECT a FROM db.t", "one name"),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT a FROM t WHERE a IN (SELECT 1) AND hex(a) = 'A'", "subquery"),
        ("SELECT a FROM t WHERE hex(a) IN (SELECT 1)", "subquery"),
        ("SELECT hex(sum(a) OVER (PARTITION BY b)) FROM t", "OVER"),
    ],
)
def test_what_is_not_supported_is_named(sql: str, said: str) -> None:
    with pytest.raises(QueryMeshError, match=said) as error:
        query(sql)
    assert isinstance(error.value, (UnsupportedError, QueryError))


def texts_of(sql: str, **functions: object) -> list[str]:
    asked = query(sql, functions=functions)  # type: ignore[arg-type]
    return [to_text(part) for part in asked.conjuncts]


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("(a[0] > 1 AND b = 2) AND c.d.e", ["a[0] > 1", "b = 2", "c.d.e"]),
        ("a[0] BETWEEN 1 AND 2 AND b = 2", ["a[0] BETWEEN 1 AND 2", "b = 2"]),
        ("a[0] = 1 OR b = 2 AND c = 3", ["a[0] = 1 OR b = 2 AND c = 3"]),
        ("CASE WHEN a[0] = 1 AND b THEN c END AND d", ["CASE WHEN a[0] = 1 AND b THEN c END", "d"]),
        ("exists(a, x -> x > 1 AND x < 3) AND b", ["exists(a, x -> x > 1 AND x < 3)", "b"]),
        ("extract(year FROM d) = 1 AND b", ["extract(year FROM d) = 1", "b"]),
        ("trim(BOTH 'x' FROM s) = 'y' AND trim(s) = 'z'",
         ["trim(BOTH 'x' FROM s) = 'y'", "trim(s) = 'z'"]),
        ("a[0] IS DISTINCT FROM b AND c", ["a[0] IS DISTINCT FROM b", "c"]),
        ("hex(s) = 'it''s (AND' -- AND so on\n AND b", ["hex(s) = 'it''s (AND'", "b"]),
        ("hex(`a AND b`) = \"x AND y\" AND b", ["hex(`a AND b`) = \"x AND y\"", "b"]),
    ],
)  # fmt: skip
def test_what_is_left_to_spark_is_cut_out_as_it_was_written(where: str, parts: list[str]) -> None:
    assert texts_of(f"SELECT a FROM t WHERE {where}") == parts
    assert texts_of(f"SELECT a, d.end FROM u JOIN t ON {where}, v WHERE u.x[1]") == [
        *parts,
        "u.x[1]",
    ]
    assert texts_of(f"SELECT a FROM t WHERE {where} GROUP BY a HAVING count(*) > 1") == parts


def test_python_functions_are_told_from_what_stands_around_them() -> None:
    near = predicate(lambda x: x, name="near")
    sql = "SELECT a FROM t WHERE near(a.b.c, d) AND hex(near(b)) || 'x' = hex(1)"
    inside, around = query(sql, functions={"near": near}).conjuncts
    assert isinstance(inside, UserCall)
    first, second = inside.args
    assert isinstance(first, SparkText)
    assert (first.sql, second) == ("a.b.c", Column(None, "d"))
    assert isinstance(around, SparkText)
    assert around.sql == f"hex({part_name(0)}) || 'x' = hex(1)"
    assert around.parts == (UserCall("near", (Column(None, "b"),)),)


def test_a_python_function_within_a_lambda_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"(?i)near\(x\) within .*lambda"):
        query("SELECT a FROM t WHERE exists(a, x -> near(x))", functions={"near": lambda x: x})


@pytest.mark.parametrize(
    ("output", "name", "sql"),
    [
        ("a.b.c", "c", "a.b.c"),
        ("a.b.c AS d", "d", "a.b.c"),
        ("a[0]", "a[0]", "a[0]"),
        ("a[0].b", "b", "a[0].b"),
        ("hex(a) h", "h", "hex(a)"),
        ("d + INTERVAL 1 DAY AS `next day`", "next day", "d + INTERVAL 1 DAY"),
        ("a[0] IS DISTINCT FROM b AS x", "x", "a[0] IS DISTINCT FROM b"),
    ],
)
def test_outputs_that_are_left_to_spark_have_names_too(output: str, name: str, sql: str) -> None:
    outputs = query(f"SELECT b, {output}, lower(s) FROM t").outputs
    assert outputs is not None
    assert [each.name for each in outputs] == ["b", name, "lower(s)"]
    assert isinstance(outputs[1].expr, SparkText)
    assert outputs[1].expr.sql == sql


def test_user_functions_are_found_whatever_their_case_and_win_over_built_ins() -> None:
    asked = query("SELECT a FROM t WHERE Length(a, b)", functions={"LENGTH": lambda a, b: a})
    call = UserCall("length", (Column(None, "a"), Column(None, "b")))
    assert asked.conjuncts == (call,)
    assert asked.functions["length"].name == "LENGTH"


def test_a_function_called_without_arguments_reads_its_own_columns() -> None:
    seen = predicate(lambda a, b: a, name="seen", columns=["s.a", "b"])
    asked = query("SELECT * FROM t AS s WHERE seen()", functions={"seen": seen})
    assert asked.conjuncts == (UserCall("seen", (Column("s", "a"), Column(None, "b"))),)


@pytest.mark.parametrize("name", ["and", "Like", "select", "cast"])
def test_a_function_cannot_take_a_word_of_sql(name: str) -> None:
    with pytest.raises(QueryError, match="word of SQL"):
        query("SELECT * FROM t", functions={name: lambda x: x})


def test_where_composes_predicates_and_texts() -> None:
    low = predicate(lambda port: pc.less(port, 100), name="low", columns=["port"])
    asked = where([low, "port IN (22, 445) -- ssh, smb", "a = 1 AND b = 2"])
    assert asked.conjuncts == (
        UserCall("low", (Column(None, "port"),)),
        Call("in", (Column(None, "port"), Literal(22), Literal(445))),
        Call("=", (Column(None, "a"), Literal(1))),
        Call("=", (Column(None, "b"), Literal(2))),
    )
    assert [relation.name for relation in asked.relations] == ["input"]
    assert where([]).conjuncts == ()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("a = = 1", "line 1, column 5"),
        ("a = 1) OR (b = 2", "column 6"),
        ("SELECT 1", "expected a condition"),
        ("", "expected one condition"),
        ("a = 1; b = 2", "expected one condition"),
        (len, "decorate it with @qm.predicate"),
        (5, "not int: write it as text"),
    ],
)
def test_where_says_what_is_wrong_with_a_condition(bad: object, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        where(["a = 1", bad])  # type: ignore[list-item]


def test_two_predicates_of_one_name_are_refused() -> None:
    with pytest.raises(QueryError, match="two predicates are named P"):
        where([predicate(lambda a: a, name=n, columns=["a"]) for n in ("p", "P")])


def test_a_predicate_without_columns_is_told_to_name_them() -> None:
    with pytest.raises(QueryError, match="predicate p does not say which columns it reads"):
        where([predicate(lambda a: a, name="p")])


def test_queries_travel_to_spark_tasks() -> None:
    asked = where([predicate(lambda a: a, name="p", columns=["a"]), "b > 1"])
    bound = asked.bind({"input": SCHEMA})
    again = pickle.loads(cloudpickle.dumps(bound))
    assert again.operators == bound.operators
    assert again.output_schema == bound.output_schema
    assert set(again.query.functions) == {"p"}


def test_the_sql_parser_is_loaded_when_text_is_first_read() -> None:
    loaded = "print('sqlglot' in sys.modules)"
    read = f"import sys; from querymesh import query; {loaded}; query('SELECT a FROM t'); {loaded}"
    ran = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]
