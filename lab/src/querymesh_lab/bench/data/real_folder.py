"""Where the real data sets lie: in one folder, of which nobody need have everything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

DATA = "QUERYMESH_DATA"
_ROOT = Path(__file__).resolve().parents[5]


def data_folder() -> Path | None:
    """The folder of QUERYMESH_DATA, or `../shared/data` from the project's root, if it is there."""
    given = os.environ.get(DATA)
    folder = Path(given) if given else _ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def holds(folder: Path | None, files: Iterable[str]) -> bool:
    """Whether the folder is there and has all these files."""
    return folder is not None and all((folder / name).is_file() for name in files)


def folder_with(files: Iterable[str]) -> Path | None:
    """The folder of real data if it has all these files."""
    folder = data_folder()
    return folder if holds(folder, files) else None


def skipped(what: str, where: str = "it is") -> str:
    """The line that says that data are not here.

    >>> skipped("CSIC requests", "they are")
    '  skipped: no CSIC requests here; QUERYMESH_DATA=folder says where they are'
    """
    return f"  skipped: no {what} here; {DATA}=folder says where {where}"
