"""`lignn bench`: speed, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    suite: Annotated[str, typer.Argument(help="Which suite; see the documentation on performance.")] = "propagation",
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller problems and fewer repetitions, for a first look.")
    ] = False,
    json: Annotated[Path | None, typer.Option("--json", help="Write the records to this file.")] = None,
) -> None:
    """Measure lignn against what one would use instead, interleaved in one run, and print the ratios."""
    from lignn.experiments import bench as suites

    suites.run(suite, quick=quick, file=json)
