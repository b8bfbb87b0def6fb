"""An advice as text: would it help, what is to be gained and by what, what learning takes."""

from __future__ import annotations

import math
from textwrap import indent

from querymesh.optimize.placement.advice import REMEMBERING, Advice
from querymesh.optimize.placement.decide import PLAIN
from querymesh.report.text.figures import UNKNOWN, counted, micros, percent, seconds, table, times
from querymesh.report.text.preparation_text import engines_text

REMEMBER = (
    "where asks about equal inputs once by itself, where that pays and also where it runs as "
    "written; its line above has no more of that than the sample showed"
)


def advice_text(advice: Advice) -> str:
    """What `print(qm.advise(...))` shows; the answer comes first."""
    parts = [f"{advice.verdict.value}: {advice.why}"]
    if advice.left_to_spark:
        parts.append("left to Spark\n" + indent("\n".join(advice.left_to_spark), "  "))
    if advice.conditions:
        parts.append("conditions\n" + indent(_conditions(advice), "  "))
    if advice.gains:
        parts.append("to be gained\n" + indent(_gains(advice), "  "))
    if advice.decision is not None:
        parts.append("engines\n" + indent(engines_text(advice.decision), "  "))
        parts.append("learning\n" + indent(_learning(advice), "  "))
    return "\n\n".join(parts)


def _conditions(advice: Advice) -> str:
    rows = [
        (
            str(number),
            each.name,
            percent(each.pass_rate),
            _us(each.catalyst_us),
            _us(each.python_us),
            UNKNOWN if math.isnan(each.rows_per_value) else f"{each.rows_per_value:.3g}",
        )
        for number, each in enumerate(advice.conditions, 1)
    ]
    head = ("#", "condition", "passes", "µs in Spark", "µs in Python", "rows a value")
    return table(head, rows, left=(1,))


def _us(us: float) -> str:
    return micros(us) if math.isfinite(us) else UNKNOWN


def _gains(advice: Advice) -> str:
    """What plain Spark takes, what each way takes off, what is left on the chosen engine."""
    job = advice.job
    rows = [("", "plain Spark", micros(advice.plain_us), seconds(job.seconds(advice.plain_us)), "")]
    rows += [
        ("–", f"by {gain.by}", micros(gain.us), seconds(job.seconds(gain.us)), gain.note)
        for gain in advice.gains
    ]
    gain = advice.plain_us / advice.expected_us if advice.expected_us > 0 else math.nan
    rows.append(
        (
            "=",
            "where, as written" if advice.engine == PLAIN else f"where, on {advice.engine}",
            micros(advice.expected_us),
            seconds(job.seconds(advice.expected_us)),
            f"{times(gain)} as fast" if advice.expected_us < advice.plain_us else "",
        )
    )
    text = table(("", "", "µs a row", "this job", ""), rows, left=(0, 1, 4))
    size = "nobody knows how many rows this job has"
    if job.rows is not None:
        size = f"about {job.rows:,.0f} rows on {counted(job.parallelism, 'task')} at once"
    text += f"\nthis job: {size}; the conditions alone, without reading the data"
    if any(each.by == REMEMBERING and each.us > 0 for each in advice.gains):
        text += f"\n{REMEMBER}"
    return text


def _learning(advice: Advice) -> str:
    calls = ""
    if advice.calls:
        calls = f", {counted(advice.calls, 'call')} of Python functions"
    lines = [
        f"{seconds(advice.learning_s)}: a bounded sample, "
        f"{counted(advice.sample_rows, 'row')} of it profiled{calls}"
    ]
    least = advice.pays_from_rows
    if not math.isnan(least):
        lines.append(
            f"it pays from about {least:,.0f} rows on, or where the same filter runs several times "
            "in one session, which learns once"
        )
    return "\n".join(lines)
