"""The command `querymesh doctor`: whether this machine has what is needed."""

from __future__ import annotations

import typer
from rich.text import Text

from querymesh.cli.results import out


def doctor() -> None:
    """Check what a run needs: Python, Java, the packages, and a small real Spark job."""
    from querymesh.report.doctor import checks

    problems = 0
    for check in checks():
        mark, style = ("ok", "green") if check.ok else ("problem", "red")
        out.print(Text.assemble((f"{mark:<8}", style), f"{check.name:<12} {check.found}"))
        if not check.ok:
            problems += 1
            out.print(Text(f"{'':8}remedy: {check.remedy}"))
    if problems:
        raise typer.Exit(1)
