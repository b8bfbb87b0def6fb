"""What tells a function from others of its name: its code, and the plain values the code uses.

::

    THRESHOLD = 0.5                     a global it reads: its value
    def ask(text, model="small"):       a default: its value
        return rate(text) > THRESHOLD   rate, of the same module: its code as well

So an edited function does not find the answers of the old one. What is no plain value (a model, a
list, a connection) is not looked into, and what the code itself assigns (a counter) neither: only
`Memo.version` can tell that they are others.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from types import CodeType, FunctionType, MethodType
from typing import Any

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_READS = frozenset({"LOAD_GLOBAL"})
_ASSIGNS = frozenset({"STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "DELETE_GLOBAL"})


def fingerprint(fn: Callable[..., Any]) -> str:
    """The same text in every process for the same function, another one when it was edited."""
    words = _Words(_module_of(fn))
    words.add(fn)
    return blake2b(repr(words.found).encode(), digest_size=16).hexdigest()


class _Words:
    """What was seen of a function, in order; only functions and objects of its own module, and
    functions that it closes over, are looked into."""

    def __init__(self, module: str) -> None:
        self.found: list[str] = []
        self._module = module
        self._seen: list[Any] = []

    def add(self, value: Any) -> None:
        """See a function, what it is made of, or a value that it uses."""
        if isinstance(value, _PLAIN):
            self.found.append(repr(value))
        elif isinstance(value, tuple | frozenset):
            self._add_several(value)
        elif not callable(value) or isinstance(value, type):
            self.found.append(_name_of(value))
        elif any(value is each for each in self._seen):
            self.found.append(f"again {_name_of(value)}")
        else:
            self._seen.append(value)
            self._add_callable(value)

    def _add_callable(self, value: Any) -> None:
        if isinstance(value, FunctionType):
            self._add_function(value)
        elif isinstance(value, functools.partial):
            self.add(value.func)
            self.add(value.args)
            self._add_named(value.keywords)
        elif isinstance(value, MethodType):
            self.add(value.__func__)
            self._add_object(value.__self__)
        elif isinstance(wrapped := getattr(value, "__wrapped__", None), FunctionType):
            self.add(wrapped)
        else:
            self._add_object(value)

    def _add_several(self, values: tuple[Any, ...] | frozenset[Any]) -> None:
        self.found.append(f"{type(values).__name__} of {len(values)}")
        for value in values if isinstance(values, tuple) else sorted(values, key=repr):
            self.add(value)

    def _add_function(self, function: FunctionType) -> None:
        code = function.__code__
        self._add_code(code)
        self.add(function.__defaults__)
        self._add_named(function.__kwdefaults__ or {})
        assigned = set(_names(code, _ASSIGNS))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name not in assigned:
                self._add_named({name: _content(cell)})
        for name in dict.fromkeys(_names(code, _READS)):
            if name in function.__globals__ and name not in assigned:
                self._add_global(name, function.__globals__[name])

    def _add_global(self, name: str, value: Any) -> None:
        is_ours = getattr(value, "__module__", None) == self._module
        if isinstance(value, FunctionType) and not is_ours:
            self.found.append(_name_of(value))
        else:
            self._add_named({name: value})

    def _add_code(self, code: CodeType) -> None:
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self.found.append(f"{code.co_code!r} {names} {code.co_argcount} {code.co_flags}")
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add_code(constant)
            else:
                self.add(constant)

    def _add_object(self, owner: Any) -> None:
        """An object by the methods of its class, and by the plain values that only `__init__`
        assigned."""
        self.found.append(_name_of(owner))
        if isinstance(owner, type) or type(owner).__module__ != self._module:
            return
        methods = {
            name: each
            for kind in reversed(type(owner).__mro__)
            if kind.__module__ == self._module
            for name, each in vars(kind).items()
            if isinstance(each, FunctionType)
        }
        self._add_named(methods)
        codes = [each.__code__ for name, each in methods.items() if name != "__init__"]
        assigned = {name for code in codes for name in _names(code, _ASSIGNS)}
        values = getattr(owner, "__dict__", {})
        self._add_named({name: each for name, each in values.items() if name not in assigned})

    def _add_named(self, values: Mapping[str, Any]) -> None:
        for name, value in sorted(values.items()):
            self.found.append(name)
            self.add(value)


def _names(code: CodeType, instructions: Iterable[str]) -> Iterator[str]:
    """The names that some instructions of a code are about, at any depth."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in instructions:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant, instructions)


def _module_of(fn: Any) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__module__", ""))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was assigned yet
        return None


def _name_of(value: Any) -> str:
    named = value if isinstance(getattr(value, "__qualname__", None), str) else type(value)
    return f"{getattr(named, '__module__', '')}.{named.__qualname__}"
