from hypothesis import assume, event, given
from hypothesis import strategies as st

from querymesh.errors import UnsupportedError
from shared_joins import shared, shared_results, shared_windows
from soak import random_cases
from window_runs import expected, run_of


@random_cases(40, 150)
@given(st.data())
def test_queries_in_one_pass_give_what_duckdb_gives_for_each(data):
    cases = data.draw(shared_windows())
    rng = data.draw(st.randoms(use_true_random=False))
    run = run_of(rng, cases[0], rng.randint(1, 6))
    try:
        join = shared(cases)
    except UnsupportedError:
        assume(False)
    event(f"{len(join.groups)} groups of {len(cases)}")
    wanted = [expected(case, run, most=3_000) for case in cases]
    event("results of all" if all(wanted) else "of some" if any(wanted) else "of none")
    assert shared_results(cases, run) == wanted
