"""Functions compiled by numba: once for one signature, on first use, and then kept on disk.

numba itself is loaded by the first call of a kernel: a query without joins never needs it.

A kernel states the types of its arguments. Arrays are C-contiguous and those it only reads may be
read-only, as memory-mapped files are; numba would otherwise compile the same function again for
every mixture of writable and read-only arrays that it meets.

Compiling takes seconds, loading from numba's cache milliseconds. The cache lies beside the module
or, where that folder cannot be written, in the user's cache folder; NUMBA_CACHE_DIR names another.
Where none of them can be written, each process compiles for itself: slow to start, never wrong.
A folder that everybody may write is no way out, since what lies in the cache is run. Nor does a
cache that cannot be read, such as one torn by a crash, stop a process: it compiles for itself too.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

_log = logging.getLogger("querymesh")

Function = TypeVar("Function", bound=Callable[..., Any])

Whole: TypeAlias = "int | np.integer[Any]"
"""A whole number, as kernels have them: they know no difference."""


class ArgumentType(NamedTuple):
    """The type of a kernel's argument, told without numba: a number, or an array of them."""

    element: str
    is_array: bool = True
    read_only: bool = True

    def numba_type(self) -> Any:
        """The same as numba has it."""
        from numba import types

        element = getattr(types, self.element)
        if not self.is_array:
            return element
        return types.Array(element, 1, "C", readonly=self.read_only)


INT = ArgumentType("int64", is_array=False)
INTS = ArgumentType("int64")
SHORTS = ArgumentType("int32")
BYTES = ArgumentType("uint8")
INTS_OUT = ArgumentType("int64", read_only=False)
FLOATS = ArgumentType("float64")
FLOATS_OUT = ArgumentType("float64", read_only=False)


class _Kernel:
    """A function that is compiled, or loaded from the cache, when it is first called."""

    def __init__(self, function: Callable[..., Any], signature: tuple[ArgumentType, ...]) -> None:
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._function = function
        self._signature = signature
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self._dispatcher is None:
            self.compile()
        return self._dispatcher(*arguments)

    def compile(self) -> None:
        """Compile now, unless that was done."""
        with _COMPILING:
            if self._dispatcher is None:
                _compile_inlined()
                self._dispatcher = self._compiled()

    def _compiled(self) -> Any:
        from numba import njit

        types = tuple(argument.numba_type() for argument in self._signature)
        dispatcher = _jit(self._function)
        try:
            dispatcher.compile(types)
        except Exception as problem:
            # A torn file fails in as many ways as there are in unpickling it; what fails for
            # another reason fails again without the cache, and then for good.
            _log.warning(
                "kernel %s cannot use its cache (%s: %s) and is compiled in this process: delete "
                "what lies in %s",
                self.__name__,
                type(problem).__name__,
                problem,
                dispatcher.stats.cache_path,
            )
            dispatcher = njit(nogil=True)(self._function)
            dispatcher.compile(types)
        dispatcher.disable_compile()
        return dispatcher


_COMPILING = Lock()
_KERNELS: list[_Kernel] = []
_INLINED: list[tuple[Callable[..., Any], Callable[[Any], Any]]] = []
"""Functions that kernels call, each with what makes the compiled one of it."""


def compile_all() -> None:
    """Compile all kernels of the imported modules, so that no task waits for them, and so that
    processes started later find them in the cache."""
    for each in _KERNELS:
        each.compile()


def kernel(*signature: ArgumentType) -> Callable[[Function], Function]:
    """Compile a function for arguments of these types."""

    def compile_when_called(function: Function) -> Function:
        _KERNELS.append(_Kernel(function, signature))
        return cast(Function, _KERNELS[-1])

    return compile_when_called


def inlined(function: Function) -> Function:
    """A small function that kernels of the same module call; it is compiled with the first."""
    _INLINED.append((function, _njit))
    return function


def address_reader(element: str) -> Callable[[Function], Function]:
    """Let kernels read arrays of such numbers by their addresses: `f(address, index)`.

    Nothing is checked: who writes an address into a table keeps its array alive, and long enough.
    """

    def read_when_compiled(function: Function) -> Function:
        _INLINED.append((function, lambda _: _reader(element)))
        return function

    return read_when_compiled


def value_at(element: str, address: int, index: Whole) -> Any:
    """What a kernel reads at an index of the array at an address, read without a kernel."""
    kind = getattr(ctypes, f"c_{element}")
    return kind.from_address(address + int(index) * ctypes.sizeof(kind)).value


def cycle_counter(function: Function) -> Function:
    """Let kernels read the processor's clock: it takes some 20 cycles and knows no seconds."""
    _INLINED.append((function, lambda _: _counter()))
    return function


def _compile_inlined() -> None:
    """Compile what kernels call, and put it where they look it up: in the module's globals."""
    while _INLINED:
        function, make = _INLINED.pop()
        function.__globals__[function.__name__] = make(function)


def _njit(function: Callable[..., Any]) -> Any:
    from numba import njit

    return njit(function)


def _reader(element: str) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    own = getattr(types, element)

    @intrinsic  # type: ignore[untyped-decorator]
    def read(_: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(own.bitwidth)
            array = builder.inttoptr(arguments[0], kind.as_pointer())
            number = builder.load(builder.gep(array, [arguments[1]]))
            if own.bitwidth == 64:
                return number
            wide = ir.IntType(64)
            return builder.sext(number, wide) if own.signed else builder.zext(number, wide)

        return types.int64(types.int64, types.int64), generate

    return read


def _counter() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def count(_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [])
            clock = builder.module.declare_intrinsic("llvm.readcyclecounter", [], kind)
            return builder.call(clock, [])

        return types.int64(), generate

    return count


def _jit(function: Callable[..., Any]) -> Any:
    from numba import njit

    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError as problem:
        _log.warning(
            "kernel %s is compiled anew in each process (%s): set NUMBA_CACHE_DIR to a folder "
            "that can be written",
            function.__name__,
            problem,
        )
        return njit(nogil=True)(function)
