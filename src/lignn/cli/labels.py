"""`lignn labels`: the labels of a service as a table, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lignn.cli.serve import JournalFile, ModelFolder, Served, lock_of, place_of

app = typer.Typer(no_args_is_help=True, help="Export the labels that people gave over `lignn serve`, or import some.")


@app.command()
def export(
    model: Served,
    to: Annotated[Path | None, typer.Option("--to", help="A .csv file; without it, the rows are printed.")] = None,
    journal: JournalFile = None,
    out: ModelFolder = None,
) -> None:
    """Write all labels by now: id, label, who gave it, when."""
    place = place_of(model, out, journal)
    from lignn.atomic import check_file, whole_file
    from lignn.errors import InputError
    from lignn.serve.engine import Engine
    from lignn.serve.export import csv_of

    if to is not None:
        if to.suffix != ".csv":
            raise InputError(f"{to}: labels are written as .csv; choose such an ending")
        check_file(to, model, place.journal)
    engine = Engine(place)
    engine.open()
    text = csv_of(engine.state, engine.journal)
    engine.close()
    if to is None:
        typer.echo(text, nl=False)
        return
    with whole_file(to) as temporary:
        temporary.write_text(text, encoding="utf-8")
    typer.echo(f"{text.count(chr(10)) - 1} labels: {to}")


@app.command(name="import")
def import_(
    model: Served,
    labels: Annotated[Path, typer.Argument(help="A .csv or .parquet file with the columns id and label.")],
    who: Annotated[str, typer.Option(help="Who gave the labels, for the history.")] = "import",
    new_class: Annotated[bool, typer.Option("--new-class", help="Allow classes that the model does not know.")] = False,
    journal: JournalFile = None,
    out: ModelFolder = None,
) -> None:
    """Put labels of a table into the journal, all or none; the service must not be running."""
    place = place_of(model, out, journal)
    from lignn.atomic import locked
    from lignn.errors import InputError
    from lignn.serve.engine import Engine, Request
    from lignn.serve.export import read

    busy = f"{place.journal}: lignn serve is using this journal; use POST /labels, or stop it first"
    with locked(lock_of(place.journal), busy):
        engine = Engine(place)
        engine.start()
        engine.opened.wait()
        try:
            if engine.failure is not None:
                raise InputError(engine.failure)
            outcome = engine.submit(Request(read(labels), who, new_classes=new_class)).result()
        finally:
            engine.close()
    typer.echo(f"{len(outcome.made)} labels changed; {place.journal}")
