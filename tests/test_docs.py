"""What the documentation names is there: files, sections, paths of the source, and public names."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest

import querymesh as qm

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").rglob("*.md"))]
HOMES = {"policies": qm.policies, "indices": qm.indices}

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAME = re.compile(r"\bqm\.(?!md\b)(policies\.|indices\.)?([A-Za-z_]\w*)")
SOURCE = re.compile(r"(?<![\w/])(?:src|lab|tests|tools|examples|docs)/[\w./*-]*\w(?:/(?![\w*]))?")
ROOM = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`")


def by_path(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def python_blocks(page: Path) -> Iterator[str]:
    for language, code in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            yield code


def anchors(page: Path) -> set[str]:
    """The sections of a page as links name them: small letters, hyphens, no other signs."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=by_path)
def test_every_link_leads_to_a_file_and_a_section_that_are_there(page: Path) -> None:
    links = [link for link in LINK.findall(prose(page)) if "://" not in link]
    broken = []
    for link in links:
        target, _, section = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (section and section not in anchors(path)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=by_path)
def test_every_path_of_the_repository_that_is_named_exists(page: Path) -> None:
    named = SOURCE.findall(LINK.sub("", page.read_text(encoding="utf-8")))
    assert [path for path in named if not list(ROOT.glob(path))] == []


def test_every_room_and_file_that_contributing_names_exists() -> None:
    """Paths there are from `src/querymesh/`, or whole."""
    named = ROOM.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) > 100
    starts = (ROOT / "src" / "querymesh", ROOT)
    assert [path for path in named if not any((start / path).exists() for start in starts)] == []


@pytest.mark.parametrize("page", CODE_PAGES, ids=by_path)
def test_python_in_the_guide_compiles(page: Path) -> None:
    for code in python_blocks(page):
        ast.parse(textwrap.dedent(code))


@pytest.mark.parametrize("page", PAGES, ids=by_path)
def test_public_names_are_public(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = []
    for home, name in NAME.findall(text):
        of = HOMES[home.rstrip(".")] if home else qm
        if name not in of.__all__:
            missing.append(f"qm.{home}{name}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=by_path)
def test_calls_of_public_names_have_the_options_they_are_given(page: Path) -> None:
    wrong = []
    for code in python_blocks(page):
        for call in ast.walk(ast.parse(textwrap.dedent(code))):
            if not isinstance(call, ast.Call):
                continue
            name = ast.unparse(call.func)
            if re.fullmatch(r"qm(\.\w+)+", name):
                options = inspect.signature(attrgetter(name.removeprefix("qm."))(qm)).parameters
                given = [keyword.arg for keyword in call.keywords]
                wrong += [f"{name}({option}=)" for option in given if option not in options]
    assert wrong == []


def test_the_reference_lists_every_public_name() -> None:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    names = {*qm.__all__} - {"__version__", "policies", "indices"}
    assert [name for name in sorted(names) if f"qm.{name}" not in text] == []
    inner = {*qm.policies.__all__, *qm.indices.__all__} - {"Policy"}
    assert [name for name in sorted(inner) if not re.search(rf"\b{name}\b", text)] == []
