"""A job's answers as its tasks ask for them: lines of JSON, with values as Arrow has them.

::

    task   {"of": "3f…", "claim": "ab12…"}               driver  {"known": [0], "mine": [2],
                                                                  "values": "QVJ…"}
           {"of": "3f…", "tell": "ab12…", "values": "QVJ…", "back": ""}      {"ok": true}

Keys are hexadecimal, one behind the other; values are an Arrow stream in base 64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from querymesh.query.costly.account.remote_allowance import RemoteAllowance, exchanged
from querymesh.query.costly.distinct import KEY_BYTES
from querymesh.query.costly.sharing.job_answers import MOST_BYTES, Claim, JobAnswersSession

MOST_KEYS = 512
"""So many are claimed or told in one line."""


@dataclass(frozen=True)
class RemoteAnswers:
    """Where the answers of a job are, small and picklable: it goes to tasks."""

    driver: RemoteAllowance

    def claim(self, name: str, keys: Sequence[bytes], ttl: float | None = None) -> Claim:
        """As `JobAnswers` has it, of the first `MOST_KEYS`."""
        asked = b"".join(keys[:MOST_KEYS]).hex()
        told = self._exchanged({"of": name, "claim": asked, "ttl": ttl})
        values = _array(told["values"]) if told["values"] else None
        return Claim(told["known"], values, told["mine"])

    def tell(
        self, name: str, keys: Sequence[bytes], values: pa.Array | None, back: Sequence[bytes]
    ) -> None:
        """As `JobAnswers` has it; values too long for a line stay with the worker that asked."""
        if values is not None and values.nbytes > MOST_BYTES:
            keys, values, back = [], None, [*keys, *back]
        for start in range(0, max(len(keys), len(back)), MOST_KEYS):
            some, given = keys[start : start + MOST_KEYS], back[start : start + MOST_KEYS]
            told: dict[str, Any] = {
                "of": name,
                "tell": b"".join(some).hex(),
                "back": b"".join(given).hex(),
            }
            if some and values is not None:
                told["values"] = _text(values.slice(start, len(some)))
            self._exchanged(told)

    def _exchanged(self, told: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(exchanged(self.driver, _line(told)))
        return answer


def is_about_answers(told: object) -> bool:
    """Whether a line from a task is a claim, or tells answers."""
    return isinstance(told, dict) and isinstance(told.get("of"), str)


def line_of_claim(told: dict[str, Any], session: JobAnswersSession) -> bytes:
    """What the driver says to such a line; ValueError if it cannot be understood."""
    if "claim" in told:
        ttl = told.get("ttl")
        if not isinstance(ttl, int | float | None):
            raise ValueError("ttl is seconds")
        claim = session.claim(told["of"], _keys(told["claim"]), ttl)
        text = "" if claim.values is None else _text(claim.values)
        return _line({"known": claim.known, "mine": claim.mine, "values": text})
    keys = _keys(told.get("tell"))
    values = _array(told["values"]) if keys else None
    if values is not None and len(values) != len(keys):
        raise ValueError("as many values as keys")
    session.tell(told["of"], keys, values, _keys(told.get("back")))
    return _line({"ok": True})


def _line(told: dict[str, Any]) -> bytes:
    return json.dumps(told).encode() + b"\n"


def _keys(text: object) -> list[bytes]:
    if not isinstance(text, str):
        raise ValueError("keys are a text")
    whole = bytes.fromhex(text)
    if len(whole) % KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    return [whole[start : start + KEY_BYTES] for start in range(0, len(whole), KEY_BYTES)]


def _text(values: pa.Array) -> str:
    batch = pa.RecordBatch.from_arrays([values], names=["value"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue()).decode()


def _array(text: object) -> pa.Array:
    if not isinstance(text, str):
        raise ValueError("values are a text")
    try:
        with pa.ipc.open_stream(base64.b64decode(text, validate=True)) as reader:
            return reader.read_all().column(0).combine_chunks()
    except (pa.ArrowException, IndexError) as problem:
        raise ValueError("values are an Arrow stream of one column") from problem
