"""The first look, `make demo`: the labels of an example, then what label inputs can do that others cannot."""

from __future__ import annotations

import csv
import shlex
import sys
from pathlib import Path

from lignn.cli import main as lignn

CHECKOUT = Path(__file__).resolve().parent.parent
STEPS = (
    (
        "Your tables: 400 accounts of a payment service, 159 of them labelled",
        "lignn inspect {payments} -o {out}/tables.html",
    ),
    (
        "Train: which method is best on this graph?",
        "lignn fit {payments} --time 40s -o {out}/model --report {out}/leaderboard.html",
    ),
    ("A label for every account", "lignn predict {out}/model -o {out}/predictions.csv"),
    (
        "Neighbours that never share a label: days and their weekdays. GCN and C&S stay at chance (14 %)",
        "lignn compare weekday --preset paper --mask-rate 0.5 --max-epochs 100 --runs 1 --only label_input "
        "--only lignn --only correct_and_smooth -o {out}/weekday.html",
    ),
)
"""Title and command of each step."""
QUICK = {"lignn fit": " --time 1s", "lignn compare": " --max-epochs 2"}


def run(out: Path, quick: bool = False) -> None:
    """Run all steps; `quick` trains for two epochs, as the tests do."""
    out.mkdir(parents=True, exist_ok=True)
    for number, (title, line) in enumerate(STEPS, 1):
        command = line.format(payments=CHECKOUT / "examples" / "payments", out=out)
        print(f"\n{number}. {title}\n   $ {command.replace(str(CHECKOUT) + '/', '')}\n", flush=True)
        shorter = next((more for start, more in QUICK.items() if command.startswith(start)), "")
        _, *arguments = shlex.split(command + shorter * quick)
        try:
            lignn(arguments)
        except SystemExit as end:
            if end.code:
                raise
        if line.startswith("lignn predict"):
            _show(out / "predictions.csv")
    pages = "\n".join(f"   {file}" for file in sorted(out.glob("*.html")))
    print(f"\nPages with pictures, to open in a browser:\n{pages}")
    print("\nYour own graph: docs/get_started/own_graph.md. All steps: lignn")


def _show(file: Path, rows: int = 8) -> None:
    """Print the first predictions of nodes without a given label."""
    with file.open(encoding="utf-8", newline="") as lines:
        found = [row for row in csv.DictReader(lines) if not row["given"]][:rows]
    print("\n   id       label      confidence  evidence")
    for row in found:
        print(f"   {row['id']:8} {row['label']:10} {float(row['confidence']):10.2f}  {row['evidence']}")


if __name__ == "__main__":
    run(CHECKOUT / "demo" if len(sys.argv) < 2 else Path(sys.argv[1]))
