"""Would it help? `qm.advise`: what `where` would do with a filter, from a bounded sample alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from querymesh.errors import OptionError
from querymesh.optimize.placement.advice import Advice, Verdict
from querymesh.optimize.placement.decide import PLAIN, Decision
from querymesh.optimize.placement.gains import conditions_of, gains_of
from querymesh.optimize.placement.worth import Job
from querymesh.policies.mesh import Trained
from querymesh.policies.policy import Policy
from querymesh.policies.registry import policy_of
from querymesh.query.predicate.predicate import Predicate
from querymesh.runtime.preparation import Preparation
from querymesh.spark.conditions.given import Condition, check_conditions
from querymesh.spark.filters.bound_conditions import bound_conditions
from querymesh.spark.filters.filter_job import FilterJob
from querymesh.spark.filters.learning.evidence import Evidence
from querymesh.spark.filters.learning.learning import Learning
from querymesh.spark.filters.learning.prepared import keep
from querymesh.spark.filters.pushed import left_to_spark

ON_ERROR = "raise"
"""As `where` has it unless told: what is learned here then serves it too."""


def advise(
    df: DataFrame,
    *conditions: Condition,
    functions: Mapping[str, Predicate | Callable[..., object]] | None = None,
    policy: str | Policy = "mesh",
) -> Advice:
    """Say whether `where` would help with these conditions, by how much, and why; nothing runs but
    a sample of bounded size.

    - `df`: a batch DataFrame; of a stream, a batch of the same columns
    - `conditions`, `functions`: as `querymesh.where` has them
    - `policy`: "mesh" or "single", or one of `querymesh.policies` with its options

    The advice shows itself in a notebook; `print(advice)` tells it in words, `advice.helps` is the
    answer. It learns what `where` would have to learn: where that pays, a `where` of the same
    conditions in this session starts at once.
    """
    chosen = policy_of(policy)
    if not isinstance(chosen, Trained):
        raise OptionError(
            f"policy {chosen.name!r} learns while it runs, so a sample tells nothing of it: advise "
            "with policy='mesh' or 'single'"
        )
    check_conditions(conditions)
    bound, columns = bound_conditions(df, conditions, functions)
    left = left_to_spark(bound, columns, settle=df.isStreaming)
    if not left.bound.operators:
        return Advice(Verdict.NO, _nothing_to_order(left.names), left_to_spark=left.names)
    if df.isStreaming:
        return Advice(
            Verdict.UNKNOWN,
            "a stream has no sample before it runs: give a batch DataFrame of the same columns, "
            "such as spark.read of files that arrived already",
            left_to_spark=left.names,
        )
    job = FilterJob(df, left, columns, None, ON_ERROR)
    learning = Learning(job, chosen.training, chosen.one_route)
    found = learning.learn()
    learns = learning.insist or found.decision is not None
    if not learns:  # `where` would not; who asks for advice wants the figures all the same
        learning = Learning(job, replace(chosen.training, insist=True), chosen.one_route)
        found = learning.learn()
    about = Job(rows=learning.rows, parallelism=learning.tasks)
    if found.decision is None or learning.evidence is None:
        return Advice(
            Verdict.UNKNOWN,
            f"{found.mesh.why}; to know more, give advise rows that can be sampled, such as those "
            "of files, or cached ones",
            left_to_spark=left.names,
            learning_s=found.seconds,
            job=about,
        )
    if learns:
        keep(job, chosen.training, found, one_route=chosen.one_route)
    advice = _from_sample(job, found, found.decision, learning.evidence, learns=learns)
    return _judged(replace(advice, job=about, left_to_spark=left.names))


def _nothing_to_order(left: tuple[str, ...]) -> str:
    if not left:
        return "there is no condition"
    return "Spark evaluates all of it while it scans, as cheaply as can be: nothing is left to gain"


def _from_sample(
    job: FilterJob, found: Preparation, decision: Decision, evidence: Evidence, *, learns: bool
) -> Advice:
    """What the sample says, before it is set against what learning takes."""
    profile, costs = evidence.profile, evidence.costs
    conditions = conditions_of(job.bound, decision, profile, costs, evidence.sample)
    return Advice(
        verdict=Verdict.NO if decision.chosen == PLAIN else Verdict.YES,
        why=decision.why,
        engine=decision.chosen if learns else PLAIN,
        plain_us=decision.plain_us,
        expected_us=decision.expected_us if learns else decision.plain_us,
        gains=gains_of(decision, profile, costs, conditions),
        conditions=conditions,
        learning_s=found.seconds,
        sample_rows=found.sample_rows,
        calls=found.calls,
        decision=decision,
    )


def _judged(advice: Advice) -> Advice:
    """The advice with learning counted in: it must save more than it takes."""
    decision = advice.decision
    if decision is None or decision.chosen == PLAIN:
        return advice
    saved_s = advice.job.seconds(decision.plain_us - decision.expected_us)
    if advice.engine == PLAIN:
        why = f"the job is small, and where runs it as written without a sample: {decision.chosen}"
    elif saved_s <= advice.learning_s:
        why = f"learning takes longer than it saves here: {decision.chosen}"
    else:
        return advice
    return replace(
        advice,
        verdict=Verdict.NO,
        why=f"{why} would save about {saved_s:.2g} s, learning takes {advice.learning_s:.2g}",
    )
