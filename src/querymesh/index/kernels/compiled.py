"""Functions compiled by numba: once for one signature, on first use, and then kept on disk.

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

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types

_log = logging.getLogger("querymesh")

Function = TypeVar("Function", bound=Callable[..., Any])

INT = types.int64
INTS = types.Array(types.int64, 1, "C", readonly=True)
SHORTS = types.Array(types.int32, 1, "C", readonly=True)
BYTES = types.Array(types.uint8, 1, "C", readonly=True)
INTS_OUT = types.Array(types.int64, 1, "C")


class _Kernel:
    """A function that is compiled, or loaded from the cache, when it is first called."""

    def __init__(self, function: Callable[..., Any], signature: tuple[Any, ...]) -> None:
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._function = function
        self._signature = signature
        self._dispatcher = _jit(function)
        self._ready = False

    def __call__(self, *arguments: Any) -> Any:
        if not self._ready:
            self.compile()
        return self._dispatcher(*arguments)

    def compile(self) -> None:
        """Make ready now."""
        try:
            self._dispatcher.compile(self._signature)
        except Exception as problem:
            # A torn file fails in as many ways as there are in unpickling it; what fails for
            # another reason fails again without the cache, and then for good.
            _log.warning(
                "kernel %s cannot use its cache (%s: %s) and is compiled in this process: delete "
                "what lies in %s",
                self.__name__,
                type(problem).__name__,
                problem,
                self._dispatcher.stats.cache_path,
            )
            self._dispatcher = numba.njit(nogil=True)(self._function)
            self._dispatcher.compile(self._signature)
        self._dispatcher.disable_compile()
        self._ready = True


_KERNELS: list[_Kernel] = []


def compile_all() -> None:
    """Make all kernels of the imported modules ready, so that no task waits for them, and so that
    processes started later find them in the cache."""
    for each in _KERNELS:
        each.compile()


def kernel(*signature: Any) -> Callable[[Function], Function]:
    """Compile a function for arguments of these types."""

    def compile_when_called(function: Function) -> Function:
        _KERNELS.append(_Kernel(function, signature))
        return cast(Function, _KERNELS[-1])

    return compile_when_called


def inlined(function: Function) -> Function:
    """A small function that kernels of the same module call."""
    return cast(Function, numba.njit(function))


def _jit(function: Callable[..., Any]) -> Any:
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError as problem:
        _log.warning(
            "kernel %s is compiled anew in each process (%s): set NUMBA_CACHE_DIR to a folder "
            "that can be written",
            function.__name__,
            problem,
        )
        return numba.njit(nogil=True)(function)
