"""The policies by name. A new one is a file with its class, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from querymesh.options import check_short_name
from querymesh.policies.policy import Policy

POLICIES: Mapping[str, str] = {
    "single": "querymesh.policies.single:Single",
    "mesh": "querymesh.policies.mesh:Mesh",
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
    made = load_class(POLICIES[given])()
    assert isinstance(made, Policy)
    return made


def load_class(address: str) -> type:
    """The class at an address, `module:Class`, imported when it is asked for."""
    module, _, name = address.partition(":")
    found: type = getattr(import_module(module), name)
    return found
