"""The indices of a join's states as text: how they are, what was asked of them, what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from querymesh.index.store.index_plan import BitPlan, IndexPlan
from querymesh.index.store.request import Pattern
from querymesh.report.text.figures import table
from querymesh.runtime.loops.index_loop import EVERYWHERE, IndexLoop

_SHOWN_CHANGES = 12


def indices_text(tuning: IndexLoop) -> str:
    """What `qm.inspect(out).indexing.explain()` prints."""
    names = tuning.attribute_names
    rows = []
    for alias, use in tuning.streams.items():
        rows.append(
            (
                alias,
                plan_text(use.plan, names[alias]),
                f"{use.probes:,}",
                f"{use.comparisons_per_probe:,.2f}",
                f"{use.bytes:,}",
            )
        )
    head = ("state", f"index ({tuning.kind})", "probes", "comparisons a probe", "index bytes")
    lines = [table(head, rows, left=(0, 1))]
    for alias, use in tuning.streams.items():
        if use.frequencies:
            lines.append(f"{alias} is asked by {frequencies_text(use.frequencies, names[alias])}")
        for shard, parts in use.partitions.items():
            if parts:
                lines.append(f"{alias}, shard {shard}, oldest first: {_partitions_text(parts)}")
    changes = tuning.changes
    for shard, change in changes[-_SHOWN_CHANGES:]:
        where = "" if shard == EVERYWHERE else f" in shard {shard}"
        new = plan_text(change.new, names[change.state])
        after = f"after {change.requests:,} requests{where}"
        lines.append(f"{after}, {change.state}: {new} ({change.why})")
    if len(changes) > _SHOWN_CHANGES:
        lines.append(f"and {len(changes) - _SHOWN_CHANGES} changes before")
    laying = sum(use.seconds for use in tuning.streams.values())
    lines.append(
        f"laying rows out took {laying:.3f} s, choosing indices {tuning.tuning_seconds:.3f} s; "
        f"{tuning.moved_rows:,} stored rows were moved to another index"
    )
    return "\n".join(lines)


def plan_text(plan: IndexPlan, names: Sequence[str]) -> str:
    """A plan in a few words.

    >>> from querymesh.index.store.configuration import Configuration
    >>> plan_text(BitPlan(Configuration((5, 0, 3), 3)), ["a", "b", "c"])
    'a 5, c 3 bits'
    """
    if isinstance(plan, BitPlan):
        config = plan.configuration
        parts = [f"{names[j]} {config.bits[j]}" for j in config.sequence if config.bits[j]]
        return f"{', '.join(parts)} bits" if parts else "no bits"
    if plan.patterns is None:
        return "a hash index for each access pattern"
    return "hash " + ("; ".join(pattern_text(p, names) for p in plan.patterns) or "none")


def pattern_text(pattern: Pattern, names: Sequence[str]) -> str:
    """An access pattern by the names of its attributes."""
    return "+".join(names[j] for j in pattern) or "nothing"


def frequencies_text(frequencies: Mapping[Pattern, float], names: Sequence[str]) -> str:
    """Access patterns, the most frequent first."""
    ranked = sorted(frequencies.items(), key=lambda item: -item[1])
    return ", ".join(f"{pattern_text(pattern, names)} {share:.0%}" for pattern, share in ranked)


def _partitions_text(partitions: Sequence[tuple[int, str]]) -> str:
    """Neighbours that are indexed alike are told together."""
    parts = []
    for how, group in groupby(partitions, key=lambda part: part[1]):
        sizes = [rows for rows, _ in group]
        parts.append(f"{sum(sizes):,} rows in {len(sizes)} by {how}")
    return ", ".join(parts)
