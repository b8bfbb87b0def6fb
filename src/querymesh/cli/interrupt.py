"""Ctrl-C on the command line: jobs and streams are stopped, state is kept, nobody sees a traceback.

PySpark's own handler cancels all jobs from within the signal, on the very connection to Java on
which the interrupted call still waits: answers get mixed up. Ours has Spark fall silent, since it
logs a page for every job that is broken off, and interrupts; what runs is cancelled afterwards.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession
from rich.console import Console

from querymesh.spark.context import cancel_all_jobs, running_session, set_log_level
from querymesh.spark.session import local_session

SILENCING_SECONDS = 2.0
"""How long Ctrl-C waits for Spark to fall silent, at most."""

err = Console(stderr=True, highlight=False)


def started_session(app_name: str) -> SparkSession:
    """An embedded Spark for a command, which Ctrl-C ends in good order."""
    session = local_session(app_name=app_name)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)
    return session


def _interrupt(*_: object) -> None:
    # On a thread of its own, which has a connection to Java of its own.
    silencing = threading.Thread(target=_silence_spark, daemon=True)
    silencing.start()
    silencing.join(SILENCING_SECONDS)
    raise KeyboardInterrupt


def _silence_spark() -> None:
    session = running_session()
    with suppress(Exception):
        if session is not None:
            set_log_level(session, "OFF")


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """Within, Ctrl-C breaks off nothing: it sets the event, for whoever looks at it in between."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def stop_all() -> None:
    """Cancel the jobs and stop the streaming queries that run; what is under a checkpoint stays."""
    # Who loses patience must not meet a traceback after all.
    with asked_to_stop():
        session = running_session()
        # A connection that was broken off may take Java's answers with it; Java ends with us.
        with suppress(Exception):
            if session is not None:
                _stop(session)


def _stop(session: SparkSession) -> None:
    running = session.streams.active
    if running:
        err.print(
            "stopping; what was done is kept under the checkpoint, and the batch that runs now is "
            "done again when the same command starts anew",
            soft_wrap=True,
        )
    for query in running:
        query.stop()
    cancel_all_jobs(session)


def quieten() -> None:
    """Keep Py4J from logging a call that Ctrl-C broke off, with its traceback."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_broken_call)


def _is_no_broken_call(record: logging.LogRecord) -> bool:
    return "while sending command" not in record.getMessage()
