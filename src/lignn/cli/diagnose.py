"""`lignn diagnose`: did the equilibrium converge, and is it the only one?"""

from __future__ import annotations

from dataclasses import asdict

import typer

from lignn.cli.output import Json, print_json
from lignn.cli.predict import Model, not_calibrated
from lignn.cli.workers import Ray, Workers, launch


def diagnose(model: Model, workers: Workers = 1, ray: Ray = None, as_json: Json = False) -> None:
    """Say whether a model's equilibrium was reached and is the only one, and how its confidence was calibrated."""
    launch(workers, ray)
    from lignn import classifier
    from lignn.processes import joined

    with joined() as processes:
        loaded = classifier.load(model)
        certificate = loaded.diagnose()
    if not processes.is_first:
        return
    if as_json:
        calibration = loaded.calibration_
        print_json(asdict(certificate) | {"calibration": None if calibration is None else asdict(calibration)})
        return
    typer.echo(str(certificate))
    typer.echo(f"confidence: {loaded.calibration_ or not_calibrated(loaded)}")
