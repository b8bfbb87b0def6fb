"""What Spark itself says of the jobs that ran: descriptions, tasks, and records read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class SparkJob:
    """One job by Spark's own count."""

    description: str | None
    tasks: int
    records: int


@contextmanager
def jobs_within(spark: SparkSession) -> Iterator[list[SparkJob]]:
    """The jobs that run within, in order; the list is filled at the end."""
    context = spark.sparkContext._jsc.sc()
    store, bus = context.statusStore(), context.listenerBus()
    bus.waitUntilEmpty()
    before = {job.jobId() for job in _listed(store.jobsList(None))}
    found: list[SparkJob] = []
    yield found
    bus.waitUntilEmpty()
    for job in sorted(_listed(store.jobsList(None)), key=lambda job: job.jobId()):
        if job.jobId() not in before:
            stages = [store.lastStageAttempt(number) for number in _listed(job.stageIds())]
            description = job.description()
            found.append(
                SparkJob(
                    description.get() if description.isDefined() else None,
                    sum(stage.numCompleteTasks() for stage in stages),
                    sum(stage.inputRecords() for stage in stages),
                )
            )


def _listed(sequence):
    return [sequence.apply(number) for number in range(sequence.size())]
