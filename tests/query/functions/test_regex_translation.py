"""RE2's patterns translated for Java, without a JVM; `test_regex` has Java's own answers."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

from querymesh.query.functions.regex import to_java
from regex_cases import ATOMS, CLASSES, STRINGS, accepted, patterns

WORD = "[0-9A-Za-z_]"
BOUNDARY = rf"(?:(?<={WORD})(?!{WORD})|(?<!{WORD})(?={WORD}))"


@pytest.mark.parametrize(
    ("re2", "java"),
    [
        (r"\bx", BOUNDARY + "x"),
        ("a.b", r"a[^\x{A}]b"),
        ("(?s)a.b", r"a[\x{0}-\x{10FFFF}]b"),
        ("(?s:a).", r"(?:a)[^\x{A}]"),
        ("^a$", r"\Aa\z"),
        ("(?m)^a$", r"(?:\A|(?<=\x{A}))a(?=\x{A}|\z)"),
        ("(?m:^)a$", r"(?:(?:\A|(?<=\x{A})))a\z"),
        ("(?m-s)^.", r"(?:\A|(?<=\x{A}))[^\x{A}]"),
        ("(?s-m)^.", r"\A[\x{0}-\x{10FFFF}]"),
        ("(?i)a1", "[aA]1"),
        ("(?i:a)b", "(?:[aA])b"),
        ("(?i)(a(?-i)b)c", "(?:[aA]b)[cC]"),
        ("(?i)i[^i-k]", r"[iI][^i-kI-K\x{212A}]"),
        ("(?i)ß", r"[\x{DF}\x{1E9E}]"),
        (r"(?i)\x73\Qs", r"[sS\x{17F}][sS\x{17F}]"),
        (r"(?i)\w\d", r"[0-9A-Za-z\x{5F}\x{17F}\x{212A}][0-9]"),
        (r"\p{Yi}\P{Lao}[\p{Yi}\p{Nd}]", r"\p{IsYi}\P{IsLao}[\p{IsYi}\p{Nd}]"),
        (r"(?i)\pL[\pLi]\p{Nd}", r"[\x{345}\p{L}][\x{345}iI\p{L}]\p{Nd}"),
        (r"(?i)\PL[\PLi]\P{Nd}", r"[^\p{L}\x{345}][iI[^\p{L}\x{345}]]\P{Nd}"),
        ("(?i-s:a).", r"(?:[aA])[^\x{A}]"),
        ("(?U)a", "a"),
        ("(?U:a)", "(?:a)"),
        ("(a)(?P<n>b)(?:c)(?<k>d)", "(?:a)(?:b)(?:c)(?:d)"),
        ("(?s)(a(?-s).).", r"(?:a[^\x{A}])[\x{0}-\x{10FFFF}]"),
        ("a*b+?c{2}d{1,}e{0,2}", "a*b+?c{2}d{1,}e{0,2}"),
        ("a{", r"a\x{7B}"),
        ("{,2}", r"\x{7B}\x{2C}2\x{7D}"),
        ("a{2,b", r"a\x{7B}2\x{2C}b"),
        (r"\d\D", r"[0-9][\x{0}-\x{2F}\x{3A}-\x{10FFFF}]"),
        (
            r"\w\W",
            r"[0-9A-Za-z\x{5F}][\x{0}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{5E}\x{60}\x{7B}-\x{10FFFF}]",
        ),
        (r"\s\S", r"[\x{9}\x{A}\x{C}\x{D}\x{20}][\x{0}-\x{8}\x{B}\x{E}-\x{1F}\x{21}-\x{10FFFF}]"),
        (r"\Aa\z", r"\Aa\z"),
        (r"\.\$\\", r"\x{2E}\x{24}\x{5C}"),
        (r"\a\f\t\n\r\v", r"\x{7}\x{C}\x{9}\x{A}\x{D}\x{B}"),
        (r"\x41\x{1F600}\101\60", r"A\x{1F600}A0"),
        (r"\Qa.b\E.", r"a\x{2E}b[^\x{A}]"),
        (r"\Q[", r"\x{5B}"),
        (r"\Q\E.", r"[^\x{A}]"),
        (
            r"\pL\PL\p{Lu}\P{Lu}\p{^Lu}\P{^Lu}\p{Greek}",
            r"\p{L}\P{L}\p{Lu}\P{Lu}\P{Lu}\p{Lu}\p{IsGreek}",
        ),
        (r"\p{Any}\P{Any}", r"[\x{0}-\x{10FFFF}][^\x{0}-\x{10FFFF}]"),
        ("[a-c]", "[a-c]"),
        ("[^a]", "[^a]"),
        ("[]a]", r"[\x{5D}a]"),
        ("[^]a]", r"[^\x{5D}a]"),
        ("[a-]", r"[a\x{2D}]"),
        ("[-a]", r"[\x{2D}a]"),
        ("[a&&b]", r"[a\x{26}\x{26}b]"),
        ("[[:alpha:]_]", r"[A-Za-z\x{5F}]"),
        ("[[:^alpha:]x]", r"[\x{0}-\x{40}\x{5B}-\x{60}\x{7B}-\x{10FFFF}x]"),
        ("[^[:punct:]]", r"[^\x{21}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{60}\x{7B}-\x{7E}]"),
        (r"[\d\s]", r"[0-9\x{9}\x{A}\x{C}\x{D}\x{20}]"),
        (r"[^\S]", r"[^\x{0}-\x{8}\x{B}\x{E}-\x{1F}\x{21}-\x{10FFFF}]"),
        (r"[\]\\]", r"[\x{5D}\x{5C}]"),
        (r"[\x61-\x{63}]", "[a-c]"),
        (r"[\-a]", r"[\x{2D}a]"),
        (r"[\pL\d]", r"[0-9\p{L}]"),
        (r"[^\p{Lu}]", r"[^\p{Lu}]"),
        ("[#-&]", r"[\x{23}-\x{26}]"),
        ("[é-ý]", r"[\x{E9}-\x{FD}]"),
        ("[a-cx-z]", "[a-cx-z]"),
        ("é|日", r"\x{E9}|\x{65E5}"),
        ("a b-", r"a\x{20}b\x{2D}"),
        (r"[\n-\r]", r"[\x{A}-\x{D}]"),
        (r"[\d-z]", r"[0-9\x{2D}z]"),
        (r"[a-\x7a]", "[a-z]"),
    ],
)
def test_every_construct_has_one_java_form(re2: str, java: str) -> None:
    assert to_java(re2) == java


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("alnum", "0-9A-Za-z"),
        ("alpha", "A-Za-z"),
        ("ascii", r"\x{0}-\x{7F}"),
        ("blank", r"\x{9}\x{20}"),
        ("cntrl", r"\x{0}-\x{1F}\x{7F}"),
        ("digit", "0-9"),
        ("graph", r"\x{21}-\x{7E}"),
        ("lower", "a-z"),
        ("print", r"\x{20}-\x{7E}"),
        ("space", r"\x{9}\x{A}\x{B}\x{C}\x{D}\x{20}"),
        ("upper", "A-Z"),
        ("word", r"0-9A-Za-z\x{5F}"),
        ("xdigit", "0-9A-Fa-f"),
    ],
)
def test_named_classes_are_spelled_out(name: str, members: str) -> None:
    assert to_java(f"[[:{name}:]]") == f"[{members}]"


def test_a_negated_class_leaves_out_every_case_of_its_letters() -> None:
    lacking = r"\x{0}-\x{40}\x{5B}-\x{60}\x{7B}-\x{17E}\x{180}-\x{2129}\x{212B}-\x{10FFFF}"
    for name in ("alpha", "lower", "upper"):
        assert to_java(f"(?i)[[:^{name}:]x]") == f"[{lacking}xX]"
        assert to_java(f"(?i)(?-i:[[:^{name}:]])") == "(?:" + to_java(f"[[:^{name}:]])")
    assert to_java(r"(?i)\D(\W)") == (
        r"[\x{0}-\x{2F}\x{3A}-\x{10FFFF}](?:[\x{0}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{5E}\x{60}"
        r"\x{7B}-\x{17E}\x{180}-\x{2129}\x{212B}-\x{10FFFF}])"
    )


def back_to_re2(java: str) -> str:
    """What the translation writes for Java alone, in RE2's words again."""
    for written, meant in {
        BOUNDARY: r"\b",
        r"(?:\A|(?<=\x{A}))": "(?m:^)",
        r"(?=\x{A}|\z)": "(?m:$)",
        r"\p{Is": r"\p{",
        r"\P{Is": r"\P{",
    }.items():
        java = java.replace(written, meant)
    return java


def assert_same(pattern: str) -> None:
    strings, again = pa.array(STRINGS), back_to_re2(to_java(pattern))
    if re.search(r"\[[^]]*\[", again):  # a class in a class, which RE2 does not have
        return
    found = pc.match_substring_regex(strings, again)
    assert found == pc.match_substring_regex(strings, pattern), (pattern, again)


@pytest.mark.parametrize("pattern", [*filter(accepted, ATOMS + CLASSES)])
@pytest.mark.parametrize("flags", ["", "(?i)", "(?s)", "(?m)", "(?ims-i)"])
def test_the_translation_of_a_construct_finds_the_same(flags: str, pattern: str) -> None:
    assert_same(flags + pattern)


@settings(max_examples=200)
@given(patterns.filter(accepted))
def test_the_translation_of_a_random_pattern_finds_the_same(pattern: str) -> None:
    assert_same(pattern)
