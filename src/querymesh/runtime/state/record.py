"""Small JSON files that know when they are damaged, or not where they belong.

    {"crc32": "9f3a01c7", "content": {"kind": "manifest", "format": 1, "batch": 7, ...}}

The checksum is that of the content as it stands in the file, and nothing else may stand in the
file: there is no byte that can change unnoticed. The content is stamped with what it is and whose;
a file of another shard, batch or query is refused although it is whole.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from querymesh.errors import StateError
from querymesh.storage import Storage

FORMAT = 1

REMEDY = (
    "restore the whole checkpoint directory from a backup, or start with a new checkpoint "
    "directory and replay the source"
)

_HEAD = '{{"crc32": "{:08x}", "content": '
_HEAD_BYTES = len(_HEAD.format(0))
_TAIL = b"}\n"


class MissingFileError(StateError):
    """A file of the state is not there."""


def broken(where: str, what: str, remedy: str = REMEDY) -> StateError:
    """The error about a file of the state: its name, what is wrong, what to do."""
    return StateError(f"join state: {where} {what}; {remedy}")


def write_record(storage: Storage, path: str, kind: str, content: Mapping[str, Any]) -> None:
    """Write a record, or replace it, in one step. Equal contents give equal files."""
    storage.write(path, seal({"kind": kind, "format": FORMAT, **content}))


def read_record(storage: Storage, path: str, kind: str, stamps: Mapping[str, Any]) -> Any:
    """The content of a record, which must bear these stamps."""
    try:
        sealed = storage.read(path)
    except FileNotFoundError as problem:
        raise MissingFileError(str(broken(storage.where(path), "is missing"))) from problem
    content = unseal(sealed)
    if content is None:
        raise broken(storage.where(path), "is damaged: its checksum does not fit its content")
    if content["format"] != FORMAT:
        found = content["format"]
        remedy = f"use the version of QueryMesh that wrote it, or {REMEDY}"
        raise broken(storage.where(path), f"has format {found}, not {FORMAT}", remedy)
    for stamp, expected in {"kind": kind, **stamps}.items():
        if content[stamp] != expected:
            what = f"does not belong here: its {stamp} is {content[stamp]}, not {expected}"
            raise broken(storage.where(path), what)
    return content


def seal(content: Mapping[str, Any]) -> bytes:
    """The bytes of a record: its content with a checksum before it."""
    body = to_json(content)
    return _HEAD.format(zlib.crc32(body)).encode() + body + _TAIL


def unseal(sealed: bytes) -> Any | None:
    """The content of a record; None if that is not, byte for byte, what was sealed."""
    body = sealed[_HEAD_BYTES : -len(_TAIL)]
    if sealed != _HEAD.format(zlib.crc32(body)).encode() + body + _TAIL:
        return None
    return json.loads(body)


def to_json(content: Mapping[str, Any]) -> bytes:
    """One text for one content. NaN and infinities are refused: other readers have none."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode()
