import pyarrow as pa
import pytest

from querymesh.errors import QueryError, SchemaError, UnsupportedError
from querymesh.query.bind.windowed_join import LONGEST_WINDOW, bind_join, stream_count
from querymesh.query.join import JoinQuery
from querymesh.query.model import Filter, Meeting, Probe, Window
from querymesh.query.parse.query import query
from querymesh.query.predicate.decorators import predicate

INSTANT = pa.timestamp("us", "UTC")
WIDE = pa.schema(
    [
        ("ts", INSTANT),
        ("x", pa.int32()),
        ("y", pa.float64()),
        ("n", pa.decimal128(9, 2)),
        ("k", pa.string()),
        ("d", pa.date32()),
        ("f", pa.bool_()),
        ("unread", pa.list_(pa.int64())),
    ]
)
SCHEMAS = {
    **dict.fromkeys("ABCD", WIDE),
    "T": pa.schema([("x", pa.int64()), ("k", pa.string()), ("y", pa.float64())]),
    "Clock": pa.schema([("ts", pa.timestamp("us")), ("x", pa.int32())]),
    "Number": pa.schema([("ts", pa.int64()), ("x", pa.int32())]),
    "Shouted": pa.schema([("TS", pa.timestamp("ms", "Asia/Tokyo")), ("X", pa.int16())]),
}
FUNCTIONS = {
    "guard": predicate(lambda *args: args[0], name="guard"),
    "guarded": predicate(lambda *args: args[0], name="guarded", after=["guard"]),
    "lost": predicate(lambda *args: args[0], name="lost", after=["gaurd"]),
    "late": predicate(lambda *args: args[0], name="late", after=["a.x>3 AND 1<a.y"]),
    "g": predicate(lambda *args: args[0], name="Shown"),
    "trusting": predicate(lambda *args: args[0], name="trusting", after=["SHOWN"]),
    "vague": predicate(lambda *args: args[0], name="vague", after=["x > 3"]),
}
STREAMS = "A a [RANGE 5 SECONDS], B b [RANGE 2 SECONDS]"
THREE = f"{STREAMS}, C c [RANGE 1 HOUR]"


def bound(relations: str, where: str, time: str | None = "ts", select: str = "1 AS o") -> JoinQuery:
    sql = f"SELECT {select} FROM {relations} WHERE {where}"
    return bind_join(query(sql, time=time, functions=FUNCTIONS), SCHEMAS)


def classes(join: JoinQuery) -> list[str]:
    return [each.name for each in join.classes]


def view(join: JoinQuery, alias: str) -> list[tuple[str, str, list[str]]]:
    """Each operator of a view: what it is, its name, and the names of those before it."""
    operators = join.views[alias].operators
    return [
        (type(op).__name__, op.name, [operators[i - 1].name for i in sorted(op.after)])
        for op in operators
    ]


def test_equalities_that_share_an_attribute_make_one_class() -> None:
    assert classes(bound(THREE, "a.k = b.k AND c.k = b.k")) == ["a.k = b.k = c.k"]
    join = bound(f"{THREE}, D d [ROWS 3]", "a.x = b.x AND c.x = d.x AND d.x = a.x AND b.k = c.k")
    assert classes(join) == ["a.x = b.x = c.x = d.x", "b.k = c.k"]
    assert [each.number for each in join.classes] == [0, 1]
    assert [each.number for each in join.keys_of("c")] == [0, 1]
    assert [each.number for each in join.keys_of("d")] == [0]


def test_a_class_is_of_one_type_and_other_types_are_another_class() -> None:
    join = bound(STREAMS, "a.x = b.x AND a.x = b.y AND a.n = b.y")
    found = [(each.name, each.dtype) for each in join.classes]
    assert found == [("a.x = b.x", pa.int64()), ("a.x = b.y", pa.float64())]


def test_two_attributes_of_one_relation_in_a_class_become_a_condition_on_it() -> None:
    join = bound(STREAMS, "a.x = b.x AND a.x = b.x + 1")
    assert classes(join) == ["a.x = b.x"]
    assert view(join, "a") == [("Probe", "b", [])]
    assert view(join, "b") == [
        ("Filter", "b.x = b.x + 1", []),
        ("Probe", "a", ["b.x = b.x + 1"]),
    ]


def test_a_key_may_be_an_expression() -> None:
    join = bound(STREAMS, "upper(a.k) = b.k AND a.x % 3 = b.x")
    assert classes(join) == ["upper(a.k) = b.k", "a.x % 3 = b.x"]
    assert all(each.in_catalyst for each in join.classes)
    (only,) = bound(STREAMS, "guard(a.k) = b.f").classes
    assert not only.in_catalyst


def test_literals_of_different_types_make_different_keys() -> None:
    where = "concat(a.k, CAST(1 AS STRING)) = b.k AND concat(a.k, CAST(TRUE AS STRING)) = c.k"
    assert len(classes(bound(THREE, where))) == 2
    again = "concat(a.k, CAST(1 AS STRING)) = b.k AND concat(a.k, CAST(1 AS STRING)) = c.k"
    assert len(classes(bound(THREE, again))) == 1


def test_the_window_of_a_relation_is_found_by_its_alias() -> None:
    join = bound(f"T t, A a [ROWS 7], {STREAMS.split(', ')[1]}", "a.x = b.x AND t.k = b.k")
    windows = [join.window_of(alias) for alias in "abt"]
    assert windows == [Window("rows", 7), Window("range", 2_000_000), None]
    assert join.longest_us == 2_000_000


def test_the_values_of_a_key_get_a_column_that_the_stream_does_not_have() -> None:
    schemas = {**SCHEMAS, "A": WIDE.append(pa.field("__key0", pa.string()))}
    sql = f"SELECT 1 AS o FROM {STREAMS} WHERE upper(a.k) = lower(b.k) AND a.d = b.d"
    join = bind_join(query(sql, time="ts"), schemas)
    first, second = join.classes
    assert join.value_column(first, "a") == "___key0"
    assert join.value_column(first, "b") == "__key0"
    assert join.value_column(second, "a") == "d"


def test_a_comparison_is_read_from_both_sides() -> None:
    join = bound(THREE, "a.k = b.k AND a.x < c.x AND c.y >= b.n")
    first, second = join.compared
    assert (first.left, first.op, first.right, first.text) == ("a", "<", "c", "a.x < c.x")
    assert (first.op_for("a"), first.op_for("c")) == ("<", ">")
    assert (second.op_for("c"), second.op_for("b")) == (">=", "<=")
    assert (first.other("a"), first.other("c")) == ("c", "a")
    assert second.side("b") is second.right_key
    assert join.comparisons_of("c") == (first, second)
    assert join.comparisons_of("a") == (first,)
    assert join.orders_of("c") == (first.right_key, second.left_key)


def test_comparisons_with_one_key_share_its_position() -> None:
    join = bound(THREE, "a.k = b.k AND c.x >= a.x AND c.x + 1 < b.x AND c.x <= b.x")
    low, other, high = join.compared
    assert join.comparisons_of("c") == (low, other, high)
    assert join.orders_of("c") == (low.left_key, other.left_key)
    assert low.left_key == high.left_key
    assert join.orders_of("b") == (other.right_key,)
    assert [join.order_of("c", each) for each in join.compared] == [0, 1, 0]
    one, true = (f"length(concat(a.k, CAST({value} AS STRING)))" for value in ("1", "TRUE"))
    apart = bound(STREAMS, f"{one} <= b.x AND {true} >= b.x")
    assert [apart.order_of("a", each) for each in apart.compared] == [0, 1]


def test_between_is_two_comparisons_where_an_index_finds_by_them() -> None:
    join = bound(STREAMS, "b.x BETWEEN a.x AND a.x + 3")
    assert [each.text for each in join.compared] == ["b.x >= a.x", "b.x <= a.x + 3"]
    assert len(join.orders_of("b")) == 1
    half = bound(STREAMS, "b.x BETWEEN 3 AND a.x")
    assert [each.text for each in half.compared] == ["b.x <= a.x"]
    assert view(half, "b")[0] == ("Filter", "b.x >= 3", [])


@pytest.mark.parametrize(
    "condition",
    [
        "b.k BETWEEN a.k AND a.k",
        "b.x NOT BETWEEN a.x AND a.y",
        "3 BETWEEN a.x AND b.x",
        "a.x + b.x BETWEEN 3 AND 4",
        "guard(b.f) BETWEEN a.f AND a.f",
    ],
)
def test_between_stays_whole_elsewhere(condition: str) -> None:
    join = bound(STREAMS, condition)
    assert join.compared == ()
    assert view(join, "a")[-1] == ("Filter", condition, ["b"])


@pytest.mark.parametrize(
    "condition",
    [
        "a.k < b.k",
        "a.x <> b.x",
        "a.x + b.x > 3",
        "a.x = b.x OR a.k = b.k",
        "guard(a.x, b.x)",
        "a.d = b.ts",
    ],
)
def test_what_no_index_finds_is_a_condition_after_the_probe(condition: str) -> None:
    join = bound(STREAMS, condition)
    assert (join.classes, join.compared) == ((), ())
    name = "guard" if "guard" in condition else condition
    assert view(join, "a") == [("Probe", "b", []), ("Filter", name, ["b"])]
    assert view(join, "b") == [("Probe", "a", []), ("Filter", name, ["a"])]


def test_each_stream_has_a_view_with_its_own_conditions_first() -> None:
    join = bound(THREE, "a.k = b.k AND b.x = c.x AND a.x > 3 AND c.f AND a.y + b.y > c.y")
    assert list(join.views) == ["a", "b", "c"]
    last = "a.y + b.y > c.y"
    assert view(join, "a") == [
        ("Filter", "a.x > 3", []),
        ("Probe", "b", ["a.x > 3"]),
        ("Probe", "c", ["a.x > 3", "b"]),
        ("Filter", last, ["a.x > 3", "b", "c"]),
    ]
    assert view(join, "b") == [("Probe", "a", []), ("Probe", "c", []), ("Filter", last, ["a", "c"])]
    assert view(join, "c")[1:3] == [("Probe", "b", ["c.f"]), ("Probe", "a", ["c.f", "b"])]
    assert all(v.output_schema == join.output_schema for v in join.views.values())
    assert all(v.source.alias == alias for alias, v in join.views.items())


def test_a_probe_is_linked_to_the_source_if_any_condition_does() -> None:
    join = bound(THREE, "a.k = b.k AND b.x = c.x AND a.y < c.y")
    links = {op.name: op.links for op in join.views["a"].operators if isinstance(op, Probe)}
    assert links["b"] == {"a"}
    assert links["c"] == {"a", "b"}, "an equality is worth more than a comparison"
    common = bound(THREE, "a.k = b.k AND b.k = c.k")
    assert [op.links for op in common.views["a"].operators] == [{"a"}, {"a"}]  # type: ignore[union-attr]


def test_conditions_between_two_probed_relations_meet_once_both_are_joined() -> None:
    join = bound(THREE, "a.k = b.k AND a.x = c.x AND b.d = c.d AND b.y < c.y")
    meetings = [op for op in join.views["a"].operators if isinstance(op, Meeting)]
    assert [(op.name, op.left, op.right, op.condition) for op in meetings] == [
        ("b.d = c.d", "b", "c", 2),
        ("b.y < c.y", "b", "c", 3),
    ]
    assert all(op.after == {1, 2} for op in meetings)
    assert [each for each in view(join, "b") if each[0] == "Meeting"] == [
        ("Meeting", "a.x = c.x", ["a", "c"])
    ]
    chain = bound(THREE, "a.k = b.k AND b.x = c.x AND b.y < c.y")
    assert not any(isinstance(op, Meeting) for v in chain.views.values() for op in v.operators)


def test_a_relation_without_a_window_is_static_and_filtered_beforehand() -> None:
    join = bound(f"T t, {STREAMS}", "a.x = b.x AND t.k = b.k AND t.y > 2 AND a.x = t.x")
    assert join.aliases == ("a", "b")
    assert [r.alias for r in join.statics] == ["t"]
    assert len(join.static_filters["t"]) == 1
    assert view(join, "a") == [
        ("Probe", "t", []),
        ("Probe", "b", []),
        ("Meeting", "t.k = b.k", ["t", "b"]),
    ]
    assert "t" not in join.times


def test_a_trailing_window_leaves_relations_without_the_time_column_static() -> None:
    join = bound("A a, B b, T t", "a.x = b.x AND a.x = t.x WINDOW 5 seconds")
    assert join.aliases == ("a", "b")
    assert [r.alias for r in join.statics] == ["t"]
    assert stream_count(join.query, SCHEMAS) == 2


def test_a_condition_on_nothing_concerns_every_stream() -> None:
    join = bound(STREAMS, "a.x = b.x AND 1 = 2")
    assert [view(join, alias)[0] for alias in "ab"] == [("Filter", "1 = 2", [])] * 2


def test_the_time_column_is_found_whatever_its_case_zone_and_unit() -> None:
    join = bound("A a [RANGE 1 DAY], Shouted s [RANGE 5 MINUTES]", "a.x = s.x")
    assert join.times == {"a": "ts", "s": "TS"}
    assert join.columns_sent("s") == ["TS", "X"]


def test_windows_of_rows_need_no_time_and_are_told() -> None:
    join = bound("A a [ROWS 3], Number n [ROWS 1]", "a.x = n.x", time=None)
    assert join.times == {}
    assert join.counts_rows
    assert not bound(STREAMS, "a.x = b.x").counts_rows


@pytest.mark.parametrize("window", ["RANGE 999999999 DAYS", f"ROWS {2**70}"])
def test_a_window_too_long_to_count_in_is_cut_where_it_makes_no_difference(window: str) -> None:
    join = bound(f"A a [{window}], B b [RANGE 2 SECONDS]", "a.x = b.x")
    assert [s.window.size for s in join.streams if s.window] == [LONGEST_WINDOW, 2_000_000]
    assert join.views["a"].source.window == join.streams[0].window


def test_only_columns_that_are_read_later_are_kept_and_only_those_read_at_all_are_sent() -> None:
    join = bound(
        f"{THREE}, T t",
        "a.k = b.k AND upper(b.k) = upper(c.k) AND a.x > 3 AND a.y < b.y AND b.d = '2024-02-29' "
        "AND t.x = c.x AND a.n + c.n > 1",
        select="a.ts, c.f, t.y",
    )
    assert join.columns_kept("a") == ["ts", "n", "k"]
    assert join.columns_sent("a") == ["ts", "x", "y", "n", "k"]
    assert join.columns_kept("b") == ["ts", "k"]
    assert join.columns_sent("b") == ["ts", "y", "k", "d"]
    assert join.columns_kept("c") == ["ts", "x", "n", "f"], "of a key that is computed, its code"
    assert join.columns_sent("c") == ["ts", "x", "n", "k", "f"]
    assert join.columns_kept("t") == ["x", "y"]
    everything = bound(STREAMS, "a.k = b.k", select="*")
    assert everything.columns_kept("a") == WIDE.names


def test_after_holds_among_the_conditions_of_one_stream_and_after_them() -> None:
    join = bound(STREAMS, "a.x = b.x AND guarded(a.k) AND guard(a.k)")
    assert view(join, "a")[:2] == [("Filter", "guarded", ["guard"]), ("Filter", "guard", [])]
    several = bound(STREAMS, "a.x = b.x AND guarded(a.k, b.k) AND guard(a.k)")
    assert view(several, "a")[-1] == ("Filter", "guarded", ["guard", "b"])
    assert view(several, "b")[-1] == ("Filter", "guarded", ["a"]), "a's tuples have passed it"
    both = bound(STREAMS, "a.x = b.x AND guarded(a.k, b.k) AND guard(a.x, b.x)")
    filters = [op for op in both.views["b"].operators if isinstance(op, Filter)]
    assert filters[0].after == {1, filters[1].index}
    key = bound(STREAMS, "a.x = b.x AND guarded(a.k) = b.f AND guard(a.k)")
    assert classes(key) == ["a.x = b.x", "guarded(a.k) = b.f"]


@pytest.mark.parametrize(
    "where",
    [
        "guarded(b.k) AND guard(a.k)",
        "guarded(b.k) AND guard(a.k, b.k)",
        "guarded(b.k) = a.f AND guard(a.k)",
        "guarded(b.k) <= a.f AND guard(a.k, b.k)",
    ],
)
def test_after_cannot_wait_for_another_stream(where: str) -> None:
    with pytest.raises(UnsupportedError, match=r"(guarded|lost) is to come after '\w+'.* b\b"):
        bound(STREAMS, f"a.x = b.x AND {where}")


def test_after_finds_a_predicate_as_it_is_shown_whatever_its_case() -> None:
    join = bound(STREAMS, "a.k = b.k AND trusting(a.k) AND g(a.k)")
    assert view(join, "a")[:2] == [("Filter", "trusting", ["Shown"]), ("Filter", "Shown", [])]


def test_after_finds_a_condition_however_its_text_is_written() -> None:
    where = "a.x = b.x AND a.x > 3 AND 1 < a.y"
    join = bound(STREAMS, f"{where} AND late(a.k)")
    assert view(join, "a")[2] == ("Filter", "late", ["a.x > 3", "1 < a.y"])
    several = bound(STREAMS, f"{where} AND late(a.k, b.k)")
    assert view(several, "b")[-1] == ("Filter", "late", ["a"]), "a's tuples have passed them"
    assert len(bound(STREAMS, f"{where} AND late(a.k) = b.f").classes) == 2


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("guard(a.k) AND lost(a.k)", "after 'gaurd', .* did you mean 'guard'"),
        ("guard(a.k) AND lost(a.k, b.k)", "after 'gaurd', .* did you mean 'guard'"),
        ("guard(a.k) AND lost(a.k) = b.f", "after 'gaurd', .* did you mean 'guard'"),
        ("a.x > 3 AND vague(a.k)", "after 'x > 3', .* did you mean 'a.x > 3'"),
        ("a.x > 3 AND late(a.k)", "after 'a.x>3 AND 1<a.y', which is no condition"),
    ],
)
def test_after_that_names_nothing_of_the_query_says_what_may_be_meant(
    where: str, message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        bound(STREAMS, f"a.x = b.x AND {where}")


def test_a_key_of_a_static_table_waits_for_its_own_conditions_only() -> None:
    where = "a.x = b.x AND guarded(t.k) = b.f"
    assert len(bound(f"{STREAMS}, T t", f"{where} AND guard(t.k)").static_filters["t"]) == 1
    with pytest.raises(UnsupportedError, match=r"after 'guard', but guarded\(t.k\) is a join key"):
        bound(f"{STREAMS}, T t", f"{where} AND guard(t.k, a.k)")


def test_a_name_in_group_by_that_is_a_column_and_an_output_is_refused() -> None:
    sql = f"SELECT a.x + 1 AS k, count(*) AS n FROM {STREAMS} WHERE a.x = b.x GROUP BY k"
    with pytest.raises(QueryError, match=r"GROUP BY k: k is a column of a"):
        bind_join(query(sql, time="ts"), SCHEMAS)


def test_streams_that_nothing_links_are_named() -> None:
    with pytest.raises(QueryError, match=r"no condition links c to a, b.*c\.key"):
        bound(THREE, "a.x = b.x AND c.x > 3")


def test_range_without_a_time_column_says_what_to_write() -> None:
    with pytest.raises(QueryError, match=r"window of a goes by time.*time="):
        bound(STREAMS, "a.x = b.x", time=None)


def test_a_time_column_that_no_stream_has_is_named() -> None:
    with pytest.raises(SchemaError, match=r"a, b.*time column moment"):
        bound(STREAMS, "a.x = b.x", time="moment")


def test_a_time_column_that_is_no_timestamp_says_what_to_do() -> None:
    with pytest.raises(SchemaError, match=r"n\.ts is BIGINT: cast it to TIMESTAMP"):
        bound("A a [RANGE 5 SECONDS], Number n [RANGE 5 SECONDS]", "a.x = n.x")


def test_times_with_and_without_a_zone_do_not_mix() -> None:
    with pytest.raises(SchemaError, match="TIMESTAMP_NTZ"):
        bound("A a [RANGE 5 SECONDS], Clock c [RANGE 5 SECONDS]", "a.x = c.x")
