import pyarrow as pa
import pytest

from meaning import computed, value_of
from querymesh.errors import QueryError
from querymesh.query.functions.like import tokens, with_backslash

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)


@pytest.mark.parametrize(
    ("position", "length", "expected"),
    [
        (1, 2, "ab"),
        (0, 2, "ab"),
        (2, 2, "bc"),
        (6, 5, "f"),
        (7, 1, ""),
        (-3, 3, "def"),
        (-3, 2, "de"),
        (-3, 4, "def"),
        (-1, 1, "f"),
        (-6, 1, "a"),
        (-8, 3, "a"),
        (-8, 2, ""),
        (-8, 1, ""),
        (2, 0, ""),
        (2, -1, ""),
        (1, INT_MAX, "abcdef"),
        (1, INT_MAX + 1, None),
        (INT_MAX, 1, ""),
        (INT_MAX + 1, 1, None),
        (INT_MIN, INT_MAX, "abcde"),
        (INT_MIN - 1, 1, None),
        (1, INT_MIN, ""),
        (1, INT_MIN - 1, None),
    ],
)
def test_substring_by_position_and_length(position: int, length: int, expected: str | None) -> None:
    s = pa.array(["abcdef", None])
    assert computed(f"substring(s, {position}, {length})", s=s) == [expected, None]
    p, n = pa.array([position] * 2), pa.array([length] * 2)
    assert computed("substring(s, p, n)", s=s, p=p, n=n) == [expected, None]
    assert computed(f"substring('abcdef', p, {length})", p=p) == [expected] * 2


def test_substring_counts_characters_and_may_go_to_the_end() -> None:
    s = pa.array(["a日本😀", "", None])
    assert computed("substring(s, 3)", s=s) == ["本😀", "", None]
    assert computed("substring(s, -2)", s=s) == ["本😀", "", None]
    assert computed("substring(s, NULL, 1)", s=s) == [None] * 3
    assert computed("substring(s, 1, NULL)", s=s) == [None] * 3


def test_case_is_mapped_in_full_wherever_it_stands() -> None:
    s = pa.array(["abc", "straße", None, "ÉA", "İ"])
    assert computed("upper(s)", s=s) == ["ABC", "STRASSE", None, "ÉA", "İ"]
    assert computed("lower(s)", s=s) == ["abc", "straße", None, "éa", "i̇"]


def test_parts_are_found_and_replaced() -> None:
    s, part = pa.array(["abcab", "", None]), pa.array(["ab", "", "a"])
    for by in ("part", "'ab'"):
        same = by == "'ab'"
        columns = {"s": s} if same else {"s": s, "part": part}
        assert computed(f"contains(s, {by})", **columns) == [True, not same, None]
        assert computed(f"startswith(s, {by})", **columns) == [True, not same, None]
        assert computed(f"endswith(s, {by})", **columns) == [True, not same, None]
        assert computed(f"replace(s, {by}, 'x')", **columns) == ["xcx", "", None]
    assert computed("replace(s, '', 'x')", s=s) == ["abcab", "", None]
    assert computed("replace('b', part, 'x')", part=part) == ["b", "b", "b"]
    for call in ("replace(s, NULL, 'x')", "replace(s, 'x', NULL)", "contains(s, NULL)"):
        assert computed(call, s=s) == [None] * 3
    assert value_of("contains('abc', 'bc')") is True
    assert value_of("startswith('abc', 'bc')") is False


def test_only_spaces_are_trimmed() -> None:
    s = pa.array([" \ta ", None])
    assert computed("trim(s)", s=s) == ["\ta", None]
    assert computed("ltrim(s)", s=s) == ["\ta ", None]
    assert computed("rtrim(s)", s=s) == [" \ta", None]


def test_concat_is_null_where_a_part_is() -> None:
    s = pa.array(["a", None])
    assert computed("concat(s)", s=s) == ["a", None]
    assert computed("concat(s, 'b', s)", s=s) == ["aba", None]


STRINGS = ["", "a", "ab", "ba", "aba", "b", "a\nb", "a%b", "a_b", "aXb", "a.b", "a\\b", "ABA"]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("%", STRINGS),
        ("%%", STRINGS),
        ("_", ["a", "b"]),
        ("__", ["ab", "ba"]),
        ("a%", ["a", "ab", "aba", "a\nb", "a%b", "a_b", "aXb", "a.b", "a\\b"]),
        ("%a", ["a", "ba", "aba"]),
        ("%ba%", ["ba", "aba"]),
        ("%b%a%", ["ba", "aba"]),
        ("a%b", ["ab", "a\nb", "a%b", "a_b", "aXb", "a.b", "a\\b"]),
        ("a_b", ["a\nb", "a%b", "a_b", "aXb", "a.b", "a\\b"]),
        ("a.b", ["a.b"]),
        ("_b%", ["ab", "aba"]),
        ("%b_", ["ba", "aba"]),
        (r"a\%b", ["a%b"]),
        (r"a\_b", ["a_b"]),
        (r"%\%%", ["a%b"]),
        (r"%\\%", ["a\\b"]),
        (r"\%%", []),
    ],
)
def test_like_matches_whole_strings(pattern: str, matching: list[str]) -> None:
    found = computed(f"s LIKE r'{pattern}'", s=pa.array([*STRINGS, None]))
    assert [s for s, match in zip(STRINGS, found, strict=False) if match] == matching
    assert found[-1] is None


def test_ilike_takes_no_regard_to_case() -> None:
    s = pa.array(["ABC", "abc", "É", None])
    assert computed("s ILIKE 'aB%'", s=s) == [True, True, False, None]
    assert computed("s ILIKE 'é'", s=s) == [False, False, True, None]


@pytest.mark.parametrize("pattern", ["a\\", "a\\b", "\\"])
def test_an_escape_before_an_ordinary_character_is_refused(pattern: str) -> None:
    with pytest.raises(QueryError, match=r"must be followed by '%', '_' or itself; write"):
        tokens(pattern)


def test_another_escape_character_is_rewritten_to_the_backslash() -> None:
    assert with_backslash("50/%", "/") == r"50\%"
    assert with_backslash("%/_//_", "/") == r"%\_/_"
    assert with_backslash("a\\b", "/") == r"a\\b"


def test_a_negated_like_with_an_escape_character() -> None:
    s = pa.array(["50%", "500", None])
    assert computed("s LIKE '50/%' ESCAPE '/'", s=s) == [True, False, None]
    assert computed("s NOT LIKE '50/%' ESCAPE '/'", s=s) == [False, True, None]
    assert computed("s NOT ILIKE '50/%' ESCAPE '/'", s=s) == [False, True, None]
