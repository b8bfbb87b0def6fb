"""What the tasks of a planned join tell beside their counts: times, full windows, sampled keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.join.window_fill import rows_in_window
from querymesh.index.store.partition import Partition
from querymesh.query.model import Probe
from querymesh.runtime.task_report import TaskReport

SAMPLED_KEYS = 256
"""Codes of a join attribute that a task tells, of each stream."""


@dataclass(frozen=True)
class PlannerSample:
    """What a planner wants to hear of; `keys` whether that includes the codes of join attributes.
    Picklable."""

    keys: bool = False

    def tell(
        self,
        fabric: JoinFabric,
        arrivals: Mapping[str, Arrivals],
        stored: Mapping[str, Partition],
        report: TaskReport,
    ) -> None:
        """Add what a step shows to the report. The arrivals must be stored and not settled yet."""
        for alias, arrived in arrivals.items():
            if not len(arrived):
                continue
            if alias in fabric.join.times:
                times = arrived.times
                first, last = report.spans.get(alias, (int(times[0]), int(times[0])))
                report.spans[alias] = min(first, int(times.min())), max(last, int(times.max()))
            for operator in fabric.join.views[alias].operators:
                if isinstance(operator, Probe):
                    relation = operator.relation
                    held = rows_in_window(fabric.join, relation, fabric.stems[relation], arrived)
                    report.window_fill[alias, relation] = held
        if self.keys:
            for alias, partition in stored.items():
                self._sample(fabric, alias, partition, report)

    def _sample(
        self, fabric: JoinFabric, alias: str, partition: Partition, report: TaskReport
    ) -> None:
        rng = np.random.default_rng((report.shard, report.batch or 0))
        count = min(SAMPLED_KEYS, len(partition))
        chosen = rng.choice(len(partition), count, replace=False)
        for position, each in enumerate(fabric.join.keys_of(alias)):
            report.key_codes[alias, each.number] = partition.keys[position][chosen]
