"""Options of the command line that need no Spark: the policies are those of the registry."""

from __future__ import annotations

from pathlib import Path

import pytest

import querymesh as qm
from command_line import fails, invoke
from querymesh.cli.options import policy_from
from querymesh.policies.policy import CommandLine
from querymesh.policies.registry import POLICIES

SAID = CommandLine(qm.policies.Training(seed=3))


def test_the_choices_of_policy_are_those_of_the_registry(tmp_path: Path) -> None:
    assert "|".join(POLICIES) in invoke("run", "--help").output
    (tmp_path / "query.sql").write_text("SELECT * FROM T")
    asked = ("run", tmp_path / "query.sql", "--input", "T=t", "--output", "o", "--policy", "mash")
    fails(invoke(*asked), 2, "'--policy'", "'mash' is not one of 'mesh', 'single'", "'chart'")


def test_a_policy_is_made_by_its_name() -> None:
    assert policy_from("eddy", SAID) == qm.policies.Eddy(seed=3)
    assert policy_from("single", SAID) == qm.policies.Single(training=SAID.training)


@pytest.mark.parametrize(("option", "owner"), [("goal", "rate"), ("weights", "chart")])
def test_an_option_of_one_policy_is_refused_with_any_other(option: str, owner: str) -> None:
    said = CommandLine(SAID.training, own={option: "1,2"})
    for name in POLICIES.keys() - {owner}:
        with pytest.raises(qm.OptionError) as told:
            policy_from(name, said)
        assert str(told.value) == (
            f"--{option} is of policy {owner}, and the policy is {name}: give --policy {owner}, "
            f"or leave --{option} out"
        )
