"""The command `querymesh advise`: would `where` help with these conditions on these files?"""

from __future__ import annotations

from rich.text import Text

import querymesh as qm
from querymesh.cli import options
from querymesh.cli.files import load_functions, read_file, reader_from
from querymesh.cli.interrupt import started_session
from querymesh.cli.results import out, write_json


def advise(
    path: options.InputPath,
    where: options.Where,
    functions: options.Functions = None,
    format: options.Format = None,
    option: options.ReaderOptions = None,
    json_file: options.JsonFile = None,
) -> None:
    """Say from a sample whether a filter would run faster, by how much, and by what."""
    reader = reader_from(format, option)
    called = load_functions(functions)
    spark = started_session("querymesh-advise")
    advice = qm.advise(read_file(spark, path, reader), *where, functions=called)
    out.print(Text(advice.explain()), soft_wrap=True)
    if json_file is not None:
        write_json(json_file, advice.figures())
