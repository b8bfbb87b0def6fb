"""What is public says what it is, in more than two words."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "lab/src")
MOST_WORDS_OF_A_RIDDLE = 2


def documented(node: ast.AST, inside: str) -> Iterator[tuple[str, int, str]]:
    """The name, line and docstring of each public class and function, at any depth of classes."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if child.name.startswith("_"):
            continue
        text = ast.get_docstring(child)
        if text is not None:
            yield f"{inside}{child.name}", child.lineno, text
        if isinstance(child, ast.ClassDef):
            yield from documented(child, f"{inside}{child.name}.")


def too_short(source: str) -> list[str]:
    """Where a docstring of a module's text says nearly nothing, as `line: name: docstring`."""
    module = ast.parse(source)
    found = [*documented(module, "")]
    if (text := ast.get_docstring(module)) is not None:
        found.append(("the module", 1, text))
    return [
        f"{line}: {name}: {text!r}"
        for name, line, text in found
        if len(text.split()) <= MOST_WORDS_OF_A_RIDDLE
    ]


def test_no_public_docstring_has_two_words_or_fewer() -> None:
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    assert paths
    places = [
        f"{path.relative_to(ROOT)}:{place}"
        for path in paths
        for place in too_short(path.read_text(encoding="utf-8"))
    ]
    assert not places, "\n".join(places)


def test_short_docstrings_are_found_wherever_they_are() -> None:
    source = '''"""A module."""
class Public:
    """Says what it is."""
    def method(self):
        """Placed."""
    def _own(self):
        """Anything."""
def function():
    """Two words."""
'''
    assert too_short(source) == [
        "4: Public.method: 'Placed.'",
        "8: function: 'Two words.'",
        "1: the module: 'A module.'",
    ]
