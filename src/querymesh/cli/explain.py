"""The command `querymesh explain`: learn a mesh from samples, show it, save it."""

from __future__ import annotations

from rich.text import Text

import querymesh as qm
from querymesh.cli import options
from querymesh.cli.files import read_files, read_query, reader_from, split_inputs, spread_over
from querymesh.cli.interrupt import started_session
from querymesh.cli.options import training_from
from querymesh.cli.results import out


def explain(
    query: options.QueryFile,
    samples: options.Samples,
    html: options.MeshPage = None,
    functions: options.Functions = None,
    time: options.Time = None,
    shards: options.Shards = None,
    save: options.SaveMesh = None,
    seed: options.Seed = 0,
    preset: options.Preset = None,
    search: options.Search = None,
    start: options.Start = None,
    tolerance: options.Tolerance = None,
    accuracy: options.Accuracy = None,
    format: options.Format = None,
    option: options.ReaderOptions = None,
) -> None:
    """Train a mesh on samples and show it: the tree, the routes, and what they save."""
    paths, reader = split_inputs(samples), reader_from(format, option)
    asked = read_query(query, functions, time)
    training = training_from(preset, search, start, tolerance, accuracy, seed)
    spark = started_session("querymesh-explain")
    data = read_files(spark, paths, reader)
    mesh = qm.train(asked, data, policy=qm.policies.Mesh(training=training))
    if isinstance(mesh, qm.JoinMesh) and shards is not None:
        mesh = spread_over(mesh, data, shards)
    out.print(Text(mesh.explain(html=html)), soft_wrap=True)
    if html is not None:
        out.print(f"page written to {html}", soft_wrap=True)
    if save is not None:
        mesh.save(save)
        out.print(f"mesh written to {save}", soft_wrap=True)
