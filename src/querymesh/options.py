"""Checks of options that people set: each raises an `OptionError` that names the option."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from numbers import Integral, Real

from querymesh.errors import OptionError, did_you_mean


def check_name(what: str, name: object, known: Collection[str]) -> None:
    """Refuse a name that is not known, listing those that are.

    >>> check_name("engine", "fabrik", ["fabric"])
    Traceback (most recent call last):
    querymesh.errors.OptionError: unknown engine 'fabrik': did you mean 'fabric'? Known: fabric
    """
    if not isinstance(name, str) or name not in known:
        raise OptionError(f"unknown {what} {name!r}: {did_you_mean(str(name), known)}")


def check_short_name(what: str, name: object, known: Collection[str], classes: str) -> None:
    """Refuse what is no name of an option that is also one of some classes, such as a policy;
    `classes` says how such a one is written."""
    if not isinstance(name, str):
        raise OptionError(
            f"{what} is a name or one of querymesh.{classes.split('.')[0]}, not "
            f"{type(name).__name__}: write {what}={min(known)!r} or {what}=querymesh.{classes}"
        )
    check_name(what, name, known)


def check_kind(what: str, value: object, kind: type, room: str) -> None:
    """Refuse a value that is no instance of a class which people find in `room`.

    >>> check_kind("training", 3, dict, "querymesh.policies")
    Traceback (most recent call last):
    querymesh.errors.OptionError: training is a querymesh.policies.dict, not int
    """
    if not isinstance(value, kind):
        raise OptionError(f"{what} is a {room}.{kind.__name__}, not {type(value).__name__}")


def check_at_least(options: object, names: Iterable[str], least: float) -> None:
    """Refuse attributes of an object of options that are below a number, or no number."""
    for name in names:
        value = getattr(options, name)
        if not least <= value < math.inf:
            raise OptionError(f"{name} is at least {least}, not {value}")


def check_integer(name: str, value: object, least: int, why: str = "") -> None:
    """Refuse what is no integer, or below the least that has a meaning; `why` says which.

    >>> check_integer("folds", 1, least=2)
    Traceback (most recent call last):
    querymesh.errors.OptionError: folds must be at least 2, not 1
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise OptionError(f"{name} must be an integer, not {value!r}")
    if int(value) < least:
        raise OptionError(f"{name} must be at least {least}{why}, not {value}")


def check_number(name: str, value: object) -> None:
    """Refuse what is no number, such as a text or a boolean."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise OptionError(f"{name} must be a number, not {value!r}")


def check_share(what: str, value: float) -> None:
    """Refuse what is no share of something: it lies above 0 and is at most 1."""
    if not 0 < value <= 1:
        raise OptionError(f"{what} is a share, above 0 and at most 1, not {value}")
