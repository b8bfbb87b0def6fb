"""The policies by name. A new one is a file with its class, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from querymesh.options import check_short_name
from querymesh.policies.policy import Policy

POLICIES: Mapping[str, str] = {
    "mesh": "querymesh.policies.mesh:Mesh",
    "single": "querymesh.policies.single:Single",
    "eddy": "querymesh.policies.eddy:Eddy",
    "cbr": "querymesh.policies.cbr:Cbr",
    "rate": "querymesh.policies.rate:Rate",
    "chart": "querymesh.policies.chart:Chart",
}


def policy_of(given: str | Policy) -> Policy:
    """The policy that was asked for, by name with its defaults or as it is."""
    if isinstance(given, Policy):
        return given
    check_short_name("policy", given, POLICIES, "policies.Mesh(sample_rows=5000)")
    return policy_class(given)()


def policy_class(name: str) -> type[Policy]:
    """The class of a policy that is registered, loaded when it is asked for."""
    found = load_class(POLICIES[name])
    assert issubclass(found, Policy)
    return found


def names_where(holds: Callable[[type[Policy]], bool]) -> list[str]:
    """The names of the policies of which something holds. It loads all of them."""
    return [name for name in POLICIES if holds(policy_class(name))]


def load_class(address: str) -> type:
    """The class at an address, `module:Class`, imported when it is asked for."""
    module, _, name = address.partition(":")
    found: type = getattr(import_module(module), name)
    return found
