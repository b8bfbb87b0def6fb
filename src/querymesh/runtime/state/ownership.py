"""Whose the join state is: the query that made it says so in `query.json`, and later runs compare.

State outlives the process. A query that is started again on the same checkpoint, but with another
window, key or predicate, would read rows that were kept, dropped or placed by other rules, and
answer wrongly. So the driver claims the folder before it runs: it describes the query as labelled
texts, and a later run that describes another query is refused with what has changed.

The folder lies in Spark's own checkpoint directory, which knows two things that are used here: the
id of the query it belongs to, and which batches were committed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping

from querymesh.errors import StateError
from querymesh.runtime.state.record import REMEDY, broken, read_record, to_json, write_record
from querymesh.storage import PART, Storage

_FILE = "query.json"


def state_folder(checkpoint: str) -> str:
    """Where the join state lies in Spark's checkpoint directory."""
    return f"{checkpoint.rstrip('/')}/querymesh/join-state"


def claim(
    folder: str,
    description: Mapping[str, str],
    free: Collection[str] = (),
    adopt: Collection[str] = (),
    checkpoint: str | None = None,
) -> dict[str, str]:
    """Say on the driver which query the state in the folder is of, and get what is stored.

    The first run stores `description`, from label ("the window of News") to text, and so does the
    next as long as none ran a batch; a later run must give the same. A label in `free` may change,
    and the new text is stored. A label in `adopt` may differ too, but the stored text stays and the
    caller goes by it, as by the number of shards.

    With Spark's `checkpoint` directory given, one that has committed batches is no place for a
    first run: its query had state, which is gone.
    """
    storage = Storage(folder)
    names = storage.names()
    if _FILE not in names or not _has_begun(names):
        if _FILE not in names:
            _refuse_what_is_left(storage, checkpoint)
        storage.make()
        bound = {label: text for label, text in description.items() if label not in free}
        fingerprint = hashlib.sha256(to_json(bound)).hexdigest()[:32]
        _store(storage, description, fingerprint)
        return dict(description)
    content = read_record(storage, _FILE, "query", {})
    stored: dict[str, str] = content["description"]
    changed = [
        f"{label} was {stored.get(label, '(not given)')}, now {description.get(label, '(none)')}"
        for label in [*stored, *(label for label in description if label not in stored)]
        if stored.get(label) != description.get(label) and label not in {*free, *adopt}
    ]
    if changed:
        raise StateError(
            f"the join state in {storage.folder} is of another query: {'; '.join(changed)}. Run "
            "the query as it was, or start with a new checkpoint directory and replay the source"
        )
    kept = {label: stored.get(label, description.get(label, "")) for label in adopt}
    now = {**description, **{label: text for label, text in kept.items() if text}}
    if now != stored:
        _store(storage, now, content["fingerprint"])
    return now


def fingerprint_of(storage: Storage) -> str:
    """The mark of the query that claimed the folder; it stands in each of its manifests."""
    return str(read_record(storage, _FILE, "query", {})["fingerprint"])


def check_checkpoint(checkpoint: str, query_id: str) -> None:
    """Refuse a checkpoint directory that is not the one the running query was given by writeStream.

    Spark names the query in the file `metadata` there before it runs a first batch.
    """
    try:
        found = json.loads(Storage(checkpoint).read("metadata"))["id"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        found = None
    if found != query_id:
        whose = "of no query" if found is None else f"of the query {found}"
        raise StateError(
            f"the directory {checkpoint} given as checkpoint= is {whose}, and the running query is "
            f"{query_id}: give the checkpointLocation of writeStream also as checkpoint="
        )


def _store(storage: Storage, description: Mapping[str, str], fingerprint: str) -> None:
    content = {"description": dict(description), "fingerprint": fingerprint}
    write_record(storage, _FILE, "query", content)


def _has_begun(names: Collection[str]) -> bool:
    """Whether anything ran: a query that was only asked for has left no state to protect."""
    return any(name != _FILE and not name.endswith(PART) for name in names)


def _refuse_what_is_left(storage: Storage, checkpoint: str | None) -> None:
    if any(not name.endswith(PART) for name in storage.names()):
        raise broken(storage.where(_FILE), "is missing, though the state of a query is there")
    if checkpoint is None:
        return
    committed = [int(name) for name in Storage(checkpoint).names("commits") if name.isdecimal()]
    if committed:
        raise broken(
            storage.folder,
            f"holds nothing, though Spark has committed batch {max(committed)} in {checkpoint}: it "
            "was deleted, or checkpoint= was another directory before",
            f"give the checkpoint= of the earlier run, {REMEDY}",
        )
