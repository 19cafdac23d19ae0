"""Labels that mean unknown, on the command line: --missing, and the note on what was read as unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

import lignn
from tests.cli.commands import outcome, run
from tests.cli.conftest import NODES, write_tables

FIT = ("fit", "mine", "-o", "new", "--max-epochs", "1")
MARKED = NODES.replace("g,,", "g,NA,").replace("h,,", "h,gone,")


def test_usual_marks_are_unknown_and_noted_once(place: Path) -> None:
    write_tables(place / "mine", MARKED.replace("gone", "-1"))
    result = outcome(*FIT)
    assert result.code == 0, result.err
    notes = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert len(notes) == 1
    assert "read as unknown labels: '-1' (1), 'NA' (1); give missing=[…] (--missing) to change this" in notes[0]
    assert lignn.load("new").class_names_ == ("blue", "red")


@pytest.mark.parametrize(
    ("options", "classes"),
    [
        (("--missing=gone",), ("NA", "blue", "red")),
        (("--missing=gone,NA",), ("blue", "red")),
        (("--missing", "gone", "--missing", "NA"), ("blue", "red")),
        (("--missing=",), ("NA", "blue", "gone", "red")),
    ],
)
def test_own_marks(place: Path, options: tuple[str, ...], classes: tuple[str, ...]) -> None:
    write_tables(place / "mine", MARKED)
    run(*FIT, *options)
    assert lignn.load("new").class_names_ == classes


def test_minus_one_and_one_are_asked_about_and_the_answer_is_taken(place: Path) -> None:
    write_tables(place / "mine", NODES.replace("red", "1").replace("blue", "-1"))
    assert "(--missing=-1) if it means unknown, missing=[] (--missing=) if it is a class" in outcome(*FIT).err
    run(*FIT, "--missing=")
    assert lignn.load("new").class_names_ == ("-1", "1")


@pytest.mark.parametrize("verb", ["compare", "tune"])
def test_runs_in_other_processes_take_the_marks_and_repeat_no_note(
    place: Path, verb: str, capfd: pytest.CaptureFixture[str]
) -> None:
    write_tables(place / "mine", MARKED)
    more = ("--only", "lpa") if verb == "compare" else ("--trials", 2)
    result = outcome(verb, "mine", *more, "--runs", 1, "--jobs", 2, "--max-epochs", 1, "--missing=NA,gone")
    assert result.code == 0, result.err
    assert result.err.count("read as unknown labels") == 1
    assert "unknown labels" not in capfd.readouterr().err  # what the processes of the runs write


def test_predict_takes_them_for_another_graph(place: Path) -> None:
    write_tables(place / "other", MARKED)
    assert "'gone' was not there in training" in outcome("predict", "model", "--graph", "other").err
    run("predict", "model", "--graph", "other", "--missing=NA,gone")
    assert outcome("predict", "model", "--missing=gone").err.startswith("error: --missing: the labels of the model's")
