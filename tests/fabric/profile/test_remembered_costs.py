"""What functions cost whose answers are remembered."""

import time

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from querymesh.fabric.profile.profiler import profile_sample
from querymesh.fabric.profile.remembered_costs import with_remembered
from querymesh.optimize.routes.dynamic_programming import dynamic_programming
from querymesh.optimize.routes.subset import Subset
from querymesh.query.costly.in_run import asking_of, in_run
from querymesh.query.parse.query import SOURCE
from querymesh.runtime.job_functions import JobFunctions

ROWS = 120


def bound(**options):
    """Two functions that take a millisecond and pass two thirds; `few` has five inputs."""

    def of(name):
        def fn(value):
            time.sleep(0.001)
            return value % 3 != 0

        return qm.predicate(fn, columns=[name], name=f"of_{name}", vectorised=False, **options)

    functions = {f"of_{name}": of(name) for name in ("many", "few")}
    query = qm.query(f"SELECT * FROM {SOURCE} s WHERE of_many(s.many) AND of_few(s.few)",
                     functions=functions)  # fmt: skip
    from dataclasses import replace

    query = replace(query, functions=in_run(query.functions))
    rng = np.random.default_rng(0)
    sample = pa.table({"many": np.arange(ROWS), "few": rng.integers(5, size=ROWS)})
    return query.bind({SOURCE: sample.schema}), sample


def test_a_function_of_few_inputs_costs_next_to_nothing_a_row_and_comes_first():
    asked, sample = bound(memo=True)
    found = with_remembered(profile_sample(asked, sample), asked, rows=100_000)
    many, few = found.profile.cost_us
    assert few < 0.1 * many
    assert (found.called_us >= 1000).all()
    learned = found.profile
    rows = Subset(learned.outcomes, learned.drop_us, learned.pass_us, learned.after)
    assert dynamic_programming(rows)[0] == 2


def test_what_is_not_remembered_costs_what_it_took():
    asked, sample = bound(memo=False)
    profile = profile_sample(asked, sample)
    found = with_remembered(profile, asked, rows=100_000)
    assert found.profile is not None
    assert (found.profile.cost_us == profile.cost_us).all()


def test_money_is_weighed_with_time():
    asked, sample = bound(memo=True, price=0.001)
    job = JobFunctions(asked.query.functions, qm.Budget(1.0, seconds_a_unit=1e5))
    profile = profile_sample(asked, sample)
    found = with_remembered(profile, asked, rows=100_000)
    assert found.called_us == pytest.approx([1e8, 1e8], rel=0.01), "a hundred seconds"
    assert asking_of(next(iter(asked.query.functions.values()))).money_us == pytest.approx(1e8)
    del job
