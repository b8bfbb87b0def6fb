"""Random regular expressions, and strings on which engines like to disagree."""

from hypothesis import strategies as st

from querymesh.errors import QueryError
from querymesh.query.functions.regex import check

STRINGS = [
    "", "a", "b", "ab", "ba", "aab", "A", "AB", "a\n", "\na", "a\nb", "\n", "a b", "a\tb", "a\x0bb",
    "a-b", "[a]", "a]", "&", "&&", "a&&b", "^", "$", ".", "\\", "é", "É", "aé", "ß", "ẞ", "İ", "ı",
    "K", "\u212a",
    "ſ", "1", "a1", "_", "日本", "😀", "a😀b", "{", "a{2}", "aa", "x\r\ny", "\r", "\u2028",
    "\u0085",
]  # fmt: skip

CLASSES = [
    "[a-c]", "[[:^lower:]]", "[^[:^word:]]",
    "[^a]", "[]a]", "[^]a]", "[a-]", "[-a]", "[[]", "[a&&b]", "[&]", "[[:alpha:]]",
    "[[:^alpha:]x]", "[[:space:][:digit:]]", "[^[:punct:]]", r"[\d\s]", r"[\W]", r"[^\S]",
    r"[\]\\]", r"[\x61-\x{63}]", r"[\n]", "[é-ý]", r"[\pL]", r"[^\p{Lu}]", r"[\^$.]", "[#-&]",
    r"[\-a]", r"[\PLx]", r"[^x\P{Lu}]",
]  # fmt: skip
ATOMS = [
    "a", "b", "A", "é", "日", ".", "^", "$", r"\A", r"\z", r"\b", r"\d", r"\D", r"\w", r"\W",
    r"\s", r"\S", r"\.", r"\$", r"\\", r"\n", r"\t", r"\v", r"\x41", r"\x{1F600}", r"\101", r"\pL",
    r"\PL", r"\p{Greek}", r"\p{^Lu}", r"\Qa.b\E", r"\Q[\E", "]", "}", "{", "a{", "{,2}", "&",
    "#", "-", " ", "\n", "(?i)", "(?s)", "(?m)", "(?U)", "(?-i)", "(?is)", "(?m-s)", r"\p{Yi}",
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
    """Whether the pattern is one that QueryMesh takes."""
    try:
        check(pattern)
    except QueryError:
        return False
    return True
