"""Finds what the tests do not notice: makes small wrong changes, one at a time, and runs the tests.

    python tools/mutate.py src/querymesh/query/functions --tests tests/query --most 50
    python tools/mutate.py src/querymesh/stats/drift.py --tests tests/stats -- -m "not spark"

Every change is one of: a comparison moved by one (`<` to `<=`) or turned round, a number one
larger or smaller, `and` for `or`, a `not` or a minus dropped, another arithmetic operator, `min`
for `max`, `True` for `False`, an `if` negated, `None` returned. The changed module stands in the
place of the real one while the tests run, and the real one is put back whatever happens. A change
is *caught* where the tests fail or run into the time limit, and has *survived* where they pass. A
survivor is either a test that is missing, or a change that makes no difference.

Words after `--` go to pytest. `--preload numpy pyarrow.compute` imports what is slow to import once
and not for every change; name no module of the project itself there. The exit status is 1 where a
change survived.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LONGEST_S = 3600.0

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
NAMES = dict(
    pair
    for a, b in (
        ("min", "max"),
        ("any", "all"),
        ("minimum", "maximum"),
        ("argmin", "argmax"),
        ("floor", "ceil"),
        ("and_kleene", "or_kleene"),
        ("lower", "upper"),
    )
    for pair in ((a, b), (b, a))
)
_BUILTIN_TYPES = ("int", "str", "float", "bool", "bytes", "list", "dict", "tuple", "set")
_NEGATABLE = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)


Steps = tuple[tuple[str, int | None], ...]
"""The way from a module to one of its nodes: fields, and places in them where they are lists."""


@dataclass(frozen=True)
class Mutant:
    """One small wrong change of one module."""

    path: Path
    line: int
    change: str
    steps: Steps
    node: ast.AST

    def text(self) -> str:
        """The module with the change."""
        tree = ast.parse(self.path.read_text())
        return ast.unparse(_replaced(tree, self.steps, self.node)) + "\n"


def mutants_of(path: Path) -> list[Mutant]:
    """All changes of one module, in the order of its lines."""
    source = path.read_text()
    lines = source.splitlines()
    found = []
    for steps, node in _places(ast.parse(source), ()):
        for changed in _changes(node):
            line = (node.target if isinstance(node, ast.comprehension) else node).lineno
            change = f"{_short(node)}  ->  {_short(changed)}  in  {lines[line - 1].strip()}"
            found.append(Mutant(path, line, change, steps, changed))
    return sorted(found, key=lambda mutant: mutant.line)


def _places(node: ast.AST, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    """Every node whose change would change what the module does, with the way to it."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment", "type_params"):
            continue
        if isinstance(node, ast.Raise):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                here = (*steps, (field, index))
                yield here, child
                yield from _places(child, here)


def _is_type(node: ast.expr) -> bool:
    """Whether an expression names a type: `A | B` is no arithmetic."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and _is_type(node.left) and _is_type(node.right)
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if isinstance(node, ast.Constant) and node.value is None:
        return True
    return name in _BUILTIN_TYPES or (name[:1].isupper() and not name.isupper())


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """The small wrong changes of one node."""
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                changed = copy.deepcopy(node)
                changed.ops[index] = COMPARISONS[type(operator)]()
                yield changed
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield ast.BoolOp(other, node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.BinOp() if (
            type(node.op) in ARITHMETIC and not _is_text(node) and not _is_type(node)
        ):
            yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in ARITHMETIC:
            yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(number + 1)
            yield ast.Constant(number - 1)
        case ast.Name(id=name) if name in NAMES and isinstance(node.ctx, ast.Load):
            yield ast.Name(NAMES[name], node.ctx)
        case ast.Attribute(attr=name) if name in NAMES:
            yield ast.Attribute(node.value, NAMES[name], node.ctx)
        case ast.If() if _worth_negating(node.test):
            yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.IfExp() if _worth_negating(node.test):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.comprehension(ifs=[test, *others]) if _worth_negating(test):
            ifs = [ast.UnaryOp(ast.Not(), test), *others]
            yield ast.comprehension(node.target, node.iter, ifs, node.is_async)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))


def _is_text(node: ast.BinOp) -> bool:
    """Whether an operand is a text: `-` between texts is an error that any test would notice."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _worth_negating(test: ast.expr) -> bool:
    """Whether negating a test is a change of its own, not also one of its operator."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return False
    if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
        return False
    return not (isinstance(test, ast.Compare) and isinstance(test.ops[-1], _NEGATABLE))


def _replaced(tree: ast.Module, steps: Steps, changed: ast.AST) -> ast.Module:
    """The module with another node at the end of the steps."""
    node: ast.AST = tree
    for field, index in steps[:-1]:
        value = getattr(node, field)
        node = value if index is None else value[index]
    field, index = steps[-1]
    if index is None:
        setattr(node, field, changed)
    else:
        getattr(node, field)[index] = changed
    return ast.fix_missing_locations(tree)


def _short(node: ast.AST) -> str:
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}"
    return " ".join(ast.unparse(node).split())[:90]


@contextmanager
def in_place(mutant: Mutant) -> Iterator[None]:
    """Has the changed module in the place of the real one."""
    real, times = mutant.path.read_bytes(), mutant.path.stat()
    text = mutant.text()
    try:
        mutant.path.write_text(text)
        yield
    finally:
        mutant.path.write_bytes(real)
        # The old time, so that compiled files of the real module stay valid.
        os.utime(mutant.path, ns=(times.st_atime_ns, times.st_mtime_ns))


def passes(tests: Sequence[str], timeout_s: float) -> bool:
    """Whether the tests pass within the time, run in a copy of this process."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.dont_write_bytecode = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os._exit(pytest.main(["-x", "-n", "0", "-p", "no:cacheprovider", *tests]))
    end = time.monotonic() + timeout_s
    try:
        while time.monotonic() < end:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status == 0
            time.sleep(0.02)
        return False
    finally:
        # What the tests started must not outlive them, nor they an interrupt of ours.
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def modules_of(paths: Sequence[Path]) -> list[Path]:
    """The modules named, and those in the folders named."""
    return [
        module
        for path in paths
        for module in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
    ]


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="+", type=Path, help="modules to change, or folders")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest runs on each change")
    parser.add_argument("--most", type=int, help="a random sample of this many changes")
    parser.add_argument("--seed", type=int, default=0, help="of that sample")
    parser.add_argument("--timeout", type=float, help="seconds for the tests of one change")
    parser.add_argument(
        "--preload", nargs="*", default=[], help="libraries to import once, not for every change"
    )
    parser.add_argument("--list", action="store_true", help="print the changes, run nothing")
    return parser.parse_args(words[:at]), words[at + 1 :]


def main() -> int:
    """Runs the tests on each change and prints what they noticed."""
    arguments, for_pytest = _arguments()
    mutants = [m for path in modules_of(arguments.modules) for m in mutants_of(path)]
    if arguments.most is not None and arguments.most < len(mutants):
        chosen = random.Random(arguments.seed).sample(range(len(mutants)), arguments.most)
        mutants = [mutants[index] for index in sorted(chosen)]
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.path}:{mutant.line}: {mutant.change}")
        return 0

    tests = [*arguments.tests, *for_pytest]
    for library in arguments.preload:
        importlib.import_module(library)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    start = time.monotonic()
    if not passes(tests, LONGEST_S):
        print("the tests fail before anything is changed", file=sys.stderr)
        return 2
    timeout_s = arguments.timeout or 10 + 5 * (time.monotonic() - start)

    survived = 0
    for number, mutant in enumerate(mutants, 1):
        with in_place(mutant):
            missed = passes(tests, timeout_s)
        survived += missed
        print(
            f"{number}/{len(mutants)} {'SURVIVED' if missed else 'caught  '} "
            f"{mutant.path}:{mutant.line}: {mutant.change}",
            flush=True,
        )
    print(f"{len(mutants) - survived} of {len(mutants)} caught, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
