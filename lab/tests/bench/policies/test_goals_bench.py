"""All policies on the same joins under three goals."""

import pytest
from rich.console import Console

from querymesh.errors import QueryMeshError
from querymesh_lab.bench.joins.core_run import CoreRun
from querymesh_lab.bench.policies import goals_bench
from querymesh_lab.bench.policies.goals_table import behind_text, print_rows
from querymesh_lab.bench.policies.step_queue import QueueOutcome, StepTime, queued, usual_steps
from querymesh_lab.bench.policies.uneven_subjects import QUICK, subject_of


def run_of(*steps):
    """A run whose steps took so long and had so many results by their end."""
    run, seconds = CoreRun(), 0.0
    for took_s, results in steps:
        seconds += took_s
        run.curve.append((seconds, results))
    return run


def test_a_queue_grows_while_steps_take_longer_than_tuples_come():
    run = run_of((1.0, 10), (3.0, 20), (1.0, 30), (1.0, 40))
    # Steps arrive at 1, 2, 3, 4 and are done at 2, 5, 6, 7: at 4 the second has a third to go.
    taken = usual_steps([run])
    assert queued(taken, rows=400, lasting_s=4.0) == QueueOutcome(results=17, waiting=200)


def test_whoever_keeps_up_has_all_but_the_last_step_and_nothing_waits():
    run = run_of((0.5, 10), (0.5, 20), (0.5, 30))
    taken = usual_steps([run])
    assert queued(taken, rows=300, lasting_s=3.0) == QueueOutcome(results=20, waiting=0)


def test_a_step_that_was_slow_once_is_no_slower():
    runs = [run_of((s, 10), (1.0, 30)) for s in (1.0, 9.0, 1.5)]
    assert usual_steps(runs) == [StepTime(1.5, 10), StepTime(1.0, 20)]
    assert usual_steps(runs, 5.0) == [
        StepTime(3.0, 10),
        StepTime(2.0, 20),
    ]


def test_uneven_streams_keep_their_shares_and_swap_them_half_way():
    subject = subject_of("5-way, uneven, swapped", quick=True)
    rows = {alias: batch.num_rows for alias, batch in subject.streams.items()}
    first, *_, last = rows.values()
    assert first == pytest.approx(last, rel=0.3), "half the time often, half of it seldom"
    assert sum(rows.values()) < 0.6 * 5 * QUICK


def test_every_policy_gives_the_same_results_on_uneven_streams():
    said = []
    rows = goals_bench.run_goals(True, ["5-way, uneven, swapped"], said.append)
    assert [row["details"]["policy"] for row in rows] == list(goals_bench.POLICIES)
    assert len({row["details"]["results"] for row in rows}) == 1
    assert rows[0]["details"]["results"] > 100
    assert any(row["details"]["switches"] for row in rows), "a planner took another order"
    console = Console(width=200)
    with console.capture() as shown:
        print_rows(rows, console)
    assert shown.get().count("*") == 3, "the best policy of each goal"
    assert shown.get().count("mesh is behind the best by") == 3
    with pytest.raises(QueryMeshError, match="unknown case 'nine-way'"):
        goals_bench.run_goals(True, ["nine-way"], said.append)


def test_how_far_the_mesh_is_behind_is_told_by_goal():
    def row(policy, time, by_end, peak):
        return {
            "case": "one",
            "details": {"policy": policy, "time": time, "by_end_percent": by_end, "peak_mb": peak},
        }

    said = behind_text([row("single", 1.0, 80.0, 4.0), row("mesh", 1.1, 80.0, 2.0)])
    work, output, memory = said.splitlines()
    assert "least work: mesh is behind the best by 10.0 %" in work
    assert "by 0.0 % at most" in output
    assert "by 0.0 % at most" in memory
