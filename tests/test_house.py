"""The house keeps its order: who touches Spark's inside, and how large things may grow."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "querymesh"
SOURCES = (LIBRARY, ROOT / "lab" / "src" / "querymesh_lab")
KERNELS = LIBRARY / "index" / "kernels"
"""Compiled code and its numpy twins, which take arrays one by one: no size is asked of them."""

INSIDE_SPARK = frozenset({"sparkContext", "_jvm", "_jdf", "rdd"})
MOST_FILES = 16
MOST_LINES = 400
MOST_PARAMETERS = 8
PUBLIC_CALLS = frozenset({"run", "run_all", "where", "train", "predicate"})
"""What people call with options by name; `spark/` defines them."""


def modules(*folders: Path) -> Iterator[Path]:
    """All Python files below some folders, in order."""
    return (path for folder in folders for path in sorted(folder.rglob("*.py")))


def place(path: Path) -> str:
    """A path as messages have it."""
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def named_inside_spark(tree: ast.AST) -> set[str]:
    """Which of the names of Spark's inside a module uses, as attributes or to `getattr`."""
    return {
        name
        for node in ast.walk(tree)
        for name in (getattr(node, "attr", None), getattr(node, "value", None))
        if isinstance(node, ast.Attribute | ast.Constant) and name in INSIDE_SPARK
    }


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters a function has, without `self` and `cls`."""
    at = function.args
    every = [*at.posonlyargs, *at.args, *at.kwonlyargs, at.vararg, at.kwarg]
    return len([each for each in every if each is not None and each.arg not in ("self", "cls")])


def takes_options(path: Path, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether people give a function's parameters by name, a few of many.

    So it is with the public calls, with classes of options, and with commands of a command line,
    whose parameters are the options one can type.
    """
    if function.name == "__init__":
        return not function.args.posonlyargs and len(function.args.args) == 1
    if path.parent in (LIBRARY / "spark", LIBRARY / "query/predicate"):
        return function.name in PUBLIC_CALLS
    return "cli" in (path.stem, path.parent.name) and not function.name.startswith("_")


def with_many_parameters(path: Path) -> Iterator[str]:
    """Functions of a file with too many parameters, as `path:line: name (count)`."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = parameters(node)
            if count > MOST_PARAMETERS and not takes_options(path, node):
                yield f"{place(path)}:{node.lineno}: {node.name} ({count})"


def test_sparks_inside_is_touched_in_one_module_of_spark() -> None:
    found = [
        f"{place(path)}: {', '.join(sorted(names))}"
        for path in modules(*SOURCES)
        if (names := named_inside_spark(parsed(path)))
    ]
    listed = "\n".join(found)
    assert len(found) <= 1, listed
    assert all(each.startswith("src/querymesh/spark/") for each in found), listed


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_folder_is_a_heap_of_files(source: Path) -> None:
    folders = [source, *(path for path in source.rglob("*") if path.is_dir())]
    files = {place(folder): len([*folder.glob("*.py")]) for folder in folders}
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}


def test_no_module_holds_two_ideas() -> None:
    lines = {
        place(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules(*SOURCES)
        if KERNELS not in path.parents
    }
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_no_function_has_more_parameters_than_one_can_follow() -> None:
    paths = (path for path in modules(*SOURCES) if KERNELS not in path.parents)
    found = [each for path in paths for each in with_many_parameters(path)]
    assert not found, "\n".join(found)


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest imports each by its name alone: of two it finds one, and then runs no test at all."""
    folders = (ROOT / "tests", ROOT / "lab" / "tests")
    names = Counter(path.name for path in modules(*folders) if path.name.startswith("test_"))
    assert [name for name, files in names.items() if files > 1] == []
