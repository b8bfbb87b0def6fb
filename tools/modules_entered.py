"""Which modules of `querymesh` a query enters, on the driver and in its tasks.

    python tools/modules_entered.py window-join      the query of examples/window_join.py
    python tools/modules_entered.py where            a batch, `where` with two conditions

How many files must one read to follow a query from end to end? A module is entered when one of its
functions is called, other than while modules are imported (`sys.setprofile`). Spark's Python
workers trace themselves: they find a `sitecustomize.py` that starts this file's `trace`. What they
found they append to a file, for they end without saying so.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
FOUND = "QUERYMESH_MODULES_ENTERED"
OPTIMIZED = 0x1  # of the code of functions, and not of modules and classes


def trace() -> None:
    """Write the name of each module of ours to the file, when it is first entered from here on."""
    file, seen = os.environ[FOUND], set[str]()

    def entered(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_flags & OPTIMIZED:
            return
        name = str(frame.f_globals.get("__name__", ""))
        if name in seen or not name.startswith("querymesh.") or _imports(frame):
            return
        seen.add(name)
        with open(file, "a", encoding="utf-8") as out:
            out.write(f"{name}\n")

    threading.setprofile(entered)
    sys.setprofile(entered)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module of ours is being imported."""
    while frame is not None:
        is_module = frame.f_code.co_name == "<module>"
        if is_module and str(frame.f_globals.get("__name__", "")).startswith("querymesh"):
            return True
        frame = frame.f_back
    return False


def window_join(folder: Path) -> None:
    """The streaming join of the example, to the end of its files."""
    import window_join as example

    import querymesh as qm

    spark = qm.local_session()
    streams = {}
    for name, rows, column in example.STREAMS:
        path = example.write_stream(folder, name, rows, column)
        reader = spark.readStream.schema(spark.read.parquet(path).schema)
        streams[name] = reader.option("maxFilesPerTrigger", 1).parquet(path)
    trace()
    checkpoint = str(folder / "checkpoint")
    out = qm.run(
        qm.query(example.SQL, time="ts"),
        streams,
        policy=qm.policies.Mesh(sample_rows=500),
        checkpoint=checkpoint,
        watermark="5 seconds",
    )
    writer = out.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start(str(folder / "result"), format="parquet").awaitTermination()
    sys.setprofile(None)


def where(_: Path) -> None:
    """A batch that is filtered by two Python conditions."""
    import querymesh as qm

    spark = qm.local_session()
    rows = spark.range(20_000).selectExpr("id", "id % 7 AS a", "id % 5 AS b")

    @qm.predicate(columns=["a"], vectorised=False)
    def small(a: int) -> bool:
        return a < 3

    @qm.predicate(columns=["b"], vectorised=False)
    def odd(b: int) -> bool:
        return b % 2 == 1

    trace()
    rows.transform(qm.where(small, odd)).count()
    sys.setprofile(None)


QUERIES = {"window-join": window_join, "where": where}


def main(query: str) -> None:
    """Run a query and list the modules it entered, by room."""
    folder = Path(tempfile.mkdtemp(prefix="querymesh-entered-"))
    found = folder / "entered.txt"
    found.touch()
    (folder / "sitecustomize.py").write_text("import modules_entered; modules_entered.trace()\n")
    paths = [str(folder), str(HERE), str(HERE.parent / "examples")]
    sys.path += paths
    os.environ[FOUND] = str(found)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *([before] if before else [])])
    QUERIES[query](folder)
    modules = sorted(set(found.read_text(encoding="utf-8").split()))
    by_room: dict[str, list[str]] = {}
    for module in modules:
        room, _, rest = module.removeprefix("querymesh.").partition(".")
        by_room.setdefault(room, []).append(rest or room)
    for room, names in by_room.items():
        print(f"{room:>10} {len(names):3}  {', '.join(names)}")
    print(f"{len(modules)} modules are entered by {query}")


if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in QUERIES]:
        sys.exit(f"say which query: {' or '.join(QUERIES)}")
    main(sys.argv[1])
