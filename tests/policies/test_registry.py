"""Policies by name; a new one is a class and a line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import querymesh as qm
from equivalence import as_multiset, rows_of
from querymesh.cost.utility import Weights
from querymesh.mesh.mesh import Mesh
from querymesh.policies.policy import CommandLine, Following, Job, Policy
from querymesh.policies.registry import POLICIES, load_class, names_where, policy_class, policy_of
from querymesh.runtime.run import Run
from querymesh.runtime.task.mesh_source import MeshSource


@dataclass(frozen=True, kw_only=True)
class Backwards(Policy):
    """The order as written, from its end; a policy that is here for this test alone."""

    name: ClassVar[str] = "backwards"

    def begin(self, job: Job) -> FromItsEnd:
        """Nothing is learned."""
        return FromItsEnd(job, job.written("the order is turned round"), {})


@dataclass(frozen=True)
class FromItsEnd:
    """The beginning of its runs."""

    job: Job
    meshes: Mapping[str, Mesh]
    rates: Mapping[str, float]

    def follow(self, run: Run) -> Following:
        """Nothing follows."""
        return Following({a: MeshSource(self.job.name, m) for a, m in self.meshes.items()})


def test_each_name_is_that_of_its_class() -> None:
    for name, address in POLICIES.items():
        made = policy_of(name)
        assert type(made) is load_class(address)
        assert made == load_class(address)()
        assert made.name == name
        assert getattr(qm.policies, type(made).__name__) is type(made)


def test_a_policy_makes_itself_of_what_was_said_on_the_command_line() -> None:
    training = qm.policies.Training(sample_rows=700, seed=5)
    planned = {"sample_rows": 700, "budget": 0.0, "seed": 5}
    own = {"rate": {"goal": "first 10"}, "chart": {"weights": "0.4,0.6"}}
    made = {
        name: policy_class(name).from_command_line(
            CommandLine(training, adapt=False, own=own.get(name, {}))
        )
        for name in POLICIES
    }
    assert made == {
        "mesh": qm.policies.Mesh(training=training, adapt=False),
        "single": qm.policies.Single(training=training, adapt=False),
        "eddy": qm.policies.Eddy(seed=5),
        "cbr": qm.policies.Cbr(seed=5),
        "rate": qm.policies.Rate(goal=qm.policies.First(10), **planned),
        "chart": qm.policies.Chart(weights=Weights(0.4, 0.6), **planned),
    }
    assert all(set(policy_class(name).own_options) == set(own.get(name, {})) for name in POLICIES)


@pytest.mark.parametrize("name", POLICIES)
def test_what_was_not_said_on_the_command_line_is_the_default(name: str) -> None:
    said = CommandLine(qm.policies.Training())
    defaults = policy_of(name)
    made = policy_class(name).from_command_line(said)
    assert replace(made, **({"seed": None} if name in ("eddy", "cbr") else {})) == defaults


def test_what_a_policy_is_like_is_told_by_itself_and_not_by_its_name() -> None:
    assert names_where(lambda policy: policy.has_plans) == ["rate", "chart"]
    assert names_where(lambda policy: policy.shares_a_pass) == ["mesh", "single"]
    assert [name for name in ("mesh", "single") if policy_of(name).one_route] == ["single"]


@pytest.mark.parametrize("name", ["eddy", "cbr", "rate", "chart"])
def test_a_policy_that_learns_while_it_runs_is_not_trained(name: str) -> None:
    query = qm.query("SELECT id FROM T WHERE ok AND a > 3")
    with pytest.raises(qm.TrainingError, match=f"policy '{name}' learns while it runs"):
        qm.train(query, rows_of(np.random.default_rng(1), 9), policy=name)


def test_a_policy_that_was_made_is_taken_as_it_is() -> None:
    made = qm.policies.Cbr(chunk=10)
    assert policy_of(made) is made


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(qm.OptionError, match="did you mean 'mesh'") as told:
        policy_of("mash")
    assert str(told.value).endswith("Known: cbr, chart, eddy, mesh, rate, single")
    assert isinstance(told.value, ValueError)


@pytest.mark.parametrize("given", [None, 3, qm.policies.Mesh, {"policy": "mesh"}])
def test_what_is_neither_name_nor_policy_is_refused(given: Any) -> None:
    with pytest.raises(qm.OptionError, match=r"a name or one of querymesh\.policies, not"):
        policy_of(given)


def test_all_that_the_module_names_is_there() -> None:
    assert {"Policy", *(type(policy_of(name)).__name__ for name in POLICIES)} <= set(
        qm.policies.__all__
    )
    assert all(getattr(qm.policies, name) for name in qm.policies.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Mash'"):
        qm.policies.Mash  # noqa: B018


def test_a_policy_is_loaded_when_it_is_first_asked_for() -> None:
    program = (
        "import sys, querymesh as qm\n"
        "loaded = lambda: 'querymesh.policies.chart' in sys.modules\n"
        "before = loaded(); qm.policies.Chart; print(before, loaded())"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert said.stdout.decode().split() == ["False", "True"]


def test_a_new_policy_is_a_line_and_runs(spark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "querymesh.policies.registry.POLICIES", {**POLICIES, "backwards": f"{__name__}:Backwards"}
    )
    people = spark.createDataFrame(rows_of(np.random.default_rng(1), 300))
    out = people.transform(qm.where("a * 2 > 6", "s LIKE '%b%'", policy="backwards"))
    expected = people.filter("a * 2 > 6 AND s LIKE '%b%'")
    assert as_multiset(out.toArrow()) == as_multiset(expected.toArrow())
    run = qm.inspect(out)
    assert (run.policy, run.engine) == ("backwards", "fabric")
    assert run.mesh.why == "the order is turned round"
    assert run.counts.rows_in == 300
    both = [qm.query("SELECT id FROM T WHERE ok"), qm.query("SELECT a FROM T WHERE a > 3")]
    with pytest.raises(qm.UnsupportedError, match="policy 'backwards' is for one query"):
        qm.run_all(both, people, policy=Backwards())
