"""What Eddies have learned as text: `qm.inspect(out).router.explain()`."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from querymesh.fabric.routers.content_record import Event
from querymesh.fabric.routers.eddy import PAIR
from querymesh.fabric.routers.learned import Learned, ShardEvent
from querymesh.fabric.routers.make_eddy import CBR
from querymesh.report.text.figures import UNKNOWN, counted, micros, percent, table

SHOWN_EVENTS = 20
SHOWN_PARTITIONS = 12
SHOWN_PLACES = 8
OTHERWISE = 0.1
"""A share of the tuples that differs from the overall one by so much is worth a line."""


def eddy_text(learned: Learned) -> str:
    """Operators with what they are known by, what was found and left out, and the routing calls."""
    parts = [
        f"policy {learned.policy}, {counted(learned.shards, 'router')}",
        _section("operators", _operators(learned)),
    ]
    if placed := _places(learned):
        parts.append(_section("operators that do otherwise after others", placed))
    if learned.pruned:
        lines = [f"{learned.operators[k]}: {why}" for k, why in sorted(learned.pruned.items())]
        parts.append(_section("operators whose place is settled", "\n".join(lines)))
    if learned.left_out:
        lines = [f"{name}: {why}" for name, why in sorted(learned.left_out.items())]
        parts.append(_section("attributes that are not tried", "\n".join(lines)))
    if learned.events:
        parts.append(_section(*_events(learned)))
    if learned.routing:
        parts.append(_section("routing calls", _calls(learned)))
    return "\n\n".join(parts)


def _section(head: str, text: str) -> str:
    return f"{head}\n{indent(text, '  ')}"


def _operators(learned: Learned) -> str:
    known = learned.estimates
    rows = []
    for index, name in learned.operators.items():
        pair = known.pairs.get(index)
        by = UNKNOWN if pair is None else " & ".join(pair.attributes)
        if index in learned.profiling:
            by += " (being profiled)" if pair is None else " (profiled again)"
        rows.append(
            (
                str(index),
                name,
                f"{known.seen.get(index, 0):,}",
                percent(known.overall[index]) if index in known.overall else UNKNOWN,
                micros(known.cost_us[index]) if index in known.cost_us else UNKNOWN,
                by,
                UNKNOWN if pair is None else f"{pair.gain:.2f}",
                "" if pair is None else _column([float(s) for s in pair.selectivity]),
            )
        )
    head = ["#", "operator", "tuples", "passes (W)", "µs a tuple"]
    if learned.policy == CBR:
        head += ["classifier", "gain", "passes by partition (S)"]
    return table(head, [row[: len(head)] for row in rows], left=(1, 5, 7))


def _column(selectivity: Sequence[float]) -> str:
    """A column of S: the first few partitions; the last of all is NULL's."""
    shown = " ".join(f"{s:.2f}" for s in selectivity[:SHOWN_PARTITIONS])
    more = len(selectivity) - SHOWN_PARTITIONS
    return f"{shown} and {more} more" if more > 0 else shown


def _places(learned: Learned) -> str:
    """Where operators pass another share of the tuples than overall: the largest differences."""
    known = learned.estimates
    found = []
    for index, contexts in known.by_context.items():
        for context, (passes, _) in contexts.numbers.items():
            behind = [name for k, name in learned.operators.items() if not context >> k & 1]
            difference = passes - known.selectivity(index)
            if behind and abs(difference) > OTHERWISE:
                found.append((abs(difference), learned.operators[index], behind, passes))
    found.sort(key=lambda each: -each[0])
    rows = [(name, ", ".join(behind), percent(s)) for _, name, behind, s in found[:SHOWN_PLACES]]
    return table(("operator", "after", "passes"), rows, left=(0, 1)) if rows else ""


def _events(learned: Learned) -> tuple[str, str]:
    last = learned.events[-SHOWN_EVENTS:]
    some = len(learned.events) > len(last)
    head = "what was found" + (f", the last {len(last)} of {len(learned.events)}" if some else "")
    names = ("tuples", "router", "operator", "decision", "because")
    rows = [_event(found, learned) for found in last]
    return head, table(names, rows, left=(1, 2, 3, 4))


def _event(found: ShardEvent, learned: Learned) -> tuple[str, ...]:
    event = found.event
    attributes = " & ".join(event.attributes)
    decision = f"{attributes} {event.decision}" if attributes else event.decision
    return (
        f"{event.rows:,}",
        found.shard,
        learned.operators.get(event.operator, str(event.operator)),
        "no attribute says enough" if event.decision == "none" else decision,
        _because(event),
    )


def _because(event: Event) -> str:
    gains = ", ".join(f"{' & '.join(each.attributes)} {each.gain:.2f}" for each in event.gains)
    return "; ".join(part for part in (f"gain {gains}" if gains else "", event.reason) if part)


def _calls(learned: Learned) -> str:
    """For each way of deciding how many calls, and to which operators."""
    by_way = learned.routing_calls
    total = sum(by_way.values())
    rows = []
    for way, calls in sorted(by_way.items(), key=lambda item: -item[1]):
        to = ", ".join(
            f"{learned.operators.get(index, index)} {count:,}"
            for (index, went_by), count in sorted(learned.routing.items())
            if went_by == way
        )
        said = f"by {way.removeprefix(PAIR).strip()}" if way.startswith(f"{PAIR} ") else way
        rows.append((said, f"{calls:,}", percent(calls / total), to))
    rows.append(("all", f"{total:,}", percent(1.0), ""))
    return table(("decided", "calls", "share", "to"), rows, left=(0, 3))
