"""Metrics, class weights and scores by class, as options and output of the commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import lignn
from tests.cli.commands import outcome, run

TINY = ("--max-epochs", "2", "--hidden", "4")
FIT = (*TINY, "--no-refit")


def test_a_metric_and_weights_by_name(place: Path) -> None:
    out = run("fit", "mine", "-o", "new", *FIT, "--metric", "log_loss", "--class-weight", "red=2", "--class-weight",
              "blue=0.5")  # fmt: skip
    classifier = lignn.load("new")
    assert (classifier.metric_, classifier.class_weight) == ("log_loss", {"red": 2, "blue": 0.5})
    value = -classifier.history_.final["val"]
    assert f"\nlog loss {value:.4f}, ROC AUC " in out
    assert " held-out labels; always " in out
    again = run("fit", "mine", "-o", "again", "--config", "new")
    assert again.replace("again", "new") == out
    assert "\n2 epochs" in run("fit", "mine", "-o", "even", *FIT, "--class-weight", "balanced")
    assert lignn.load("even").class_weight == "balanced"


def test_scores_come_with_a_guess_and_every_class(place: Path) -> None:
    lines = run("fit", "mine", "-o", "new", *FIT).splitlines()
    headline, header, *classes, basis = lines[lines.index("") + 1 :]
    assert headline.startswith("F1-micro ")
    assert re.search(r", ROC AUC \d\.\d+ on \d+ held-out labels; always '(red|blue)' scores 0\.5000$", headline)
    assert header.split() == ["class", "precision", "recall", "support"]
    assert sorted(line.split()[0] for line in classes) == ["blue", "red"]
    assert basis.startswith("These labels were held back for this score; ")
    told = json.loads(run("fit", "mine", "-o", "new", *FIT, "--json"))
    assert (told["metric"], told["report"]["part"], told["report"]["baseline"]) == ("f1_micro", "held_out", 0.5)
    assert sum(one["support"] for one in told["report"]["classes"]) == told["report"]["nodes"]


def test_a_page_of_a_fit(place: Path) -> None:
    out = run("fit", "mine", "-o", "new", *FIT, "--report", "new.html")
    assert "\nReport: new.html\n" in out
    text = Path("new.html").read_text(encoding="utf-8")
    assert text.count("<figure>") == 3
    assert "How good is new?" in text
    assert "These labels were held back for this score" in text
    assert "raining nodes" not in text
    bad = outcome("fit", "mine", "-o", "other", "--report", "new.pdf")
    assert (bad.code, Path("other").exists()) == (2, False)
    assert "new.pdf: the report is an .html file" in bad.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metric", "f1"), "metric 'f1' is unknown; "),
        (("--class-weight", "green=2"), "class_weight: class 'green' was not there in training"),
        (("--class-weight", "balanc"), "class_weight 'balanc' is unknown; did you mean 'balanced'?"),
        (("--class-weight", "red=x"), "class_weight: a positive number is needed for class 'red', got 'x'"),
    ],
)
def test_bad_values_are_one_sentence_and_nothing_is_written(place: Path, options, message: str) -> None:
    told = outcome("fit", "mine", "-o", "new", *TINY, *options)
    assert told.code == 2
    assert message in told.err
    assert {path.name for path in place.iterdir()} == {"mine", "model"}


def test_predict_scores_labels_that_were_held_out(place: Path) -> None:
    assert "held out" not in run("predict", "model", "-o", "p.csv")
    text = Path("mine/nodes.csv").read_text(encoding="utf-8")
    nodes = text.replace("a,red,1,0", "a,red,1,0.25").splitlines()  # another graph than that of the model
    parts = ["split", *["train"] * 8, *["test"] * 4]
    folder = Path("divided")
    folder.mkdir()
    rows = [f"{row},{part}" for row, part in zip(nodes, parts, strict=True)]
    (folder / "nodes.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    (folder / "edges.csv").write_text(Path("mine/edges.csv").read_text(encoding="utf-8"), encoding="utf-8")
    out = run("predict", "model", "--graph", "divided", "-o", "p.csv")
    assert "labels that were held out: F1-micro " in out
    assert "on 4 nodes; always" in out
    told = json.loads(run("predict", "model", "--graph", "divided", "-o", "p.csv", "--json"))
    assert told["report"]["nodes"] == 4


def test_compare_and_tune_take_a_metric(place: Path) -> None:
    options = (*TINY, "--runs", 1, "--jobs", 1, "--metric", "log_loss")
    out = run("compare", "mine", "--only", "lpa", "-o", "c.html", *options)
    assert "test log loss" in out.splitlines()[0]
    assert "precision / recall of every class (%), mean over runs" in out
    told = json.loads(run("compare", "mine", "--only", "lpa", "-o", "c.html", *options, "--json"))
    assert told["metric"] == "log_loss"
    assert all(one["test"] >= 0 for one in told["runs"])
    assert told["guess"] == pytest.approx(told["runs"][0]["report"]["baseline"])
    text = Path("c.html").read_text(encoding="utf-8")
    assert text.count("<figure>") == 4
    tuned = json.loads(run("tune", "mine", "--trials", 2, *options, "--json"))
    assert tuned["metric"] == "log_loss"
    assert [one["val"] for one in tuned["trials"]] == sorted(one["val"] for one in tuned["trials"])
