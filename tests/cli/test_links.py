"""One table on the command line: from a file to predictions of its rows."""

import csv
import json

import pyarrow.csv
import pytest

from tests.cli.commands import outcome, run
from tests.graph.test_linked import N, payments

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
LINKS = ("--link", "card", "--link", "shop", "--order", "day")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    half = [label if i % 2 else "" for i, label in enumerate(payments()["label"].to_pylist())]
    pyarrow.csv.write_csv(payments().set_column(0, "outcome", [half]), "payments.csv")
    return "payments.csv"


def fit(table, *more):
    return outcome("fit", table, "--column", "label=outcome", "-o", "m", *more)


@pytest.mark.parametrize("method", [("--method", "boosted"), ("--max-epochs", "3")], ids=["boosted", "default"])
@pytest.mark.parametrize("links", [(), LINKS], ids=["nearest", "linked"])
def test_predictions_are_those_of_the_rows_in_their_order(table, links, method):
    found = fit(table, *links, *method)
    assert found.code == 0, found.err
    assert found.reading == []
    run("predict", "m", "-o", "predictions.csv")
    with open("predictions.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [str(i) for i in range(N)]
    assert [row["given"] for row in rows[:4]] == ["", "yes", "", "no"]
    assert run("predict", "m", "--graph", table, "-o", "again.csv").startswith(f"{N} predictions")


def test_what_the_rules_did_is_said(table):
    lines = fit(table, *LINKS, "--max-epochs", "2").err.splitlines()
    assert lines[:3] == [
        "payments.csv: label = outcome, 4 features",
        "card: 6 values join 40 of 40 rows",
        "shop: 4 values join 39 of 40 rows; 1 have one of their own",
    ]


def test_the_rules_are_saved_with_the_model(table):
    fit(table, *LINKS, "--max-epochs", "2", "--no-graph")
    with open("m/generation-1/config.json", encoding="utf-8") as file:
        links = json.load(file)["inputs"]["reading"]["links"]
    assert links == {"columns": ["card", "shop"], "nearest": 0, "order": "day"}
    assert run("predict", "m", "--graph", table, "-o", "p.csv").startswith(f"{N} predictions")


def test_bad_rules_are_told_in_a_line(table):
    for more, words in (
        (("--link", "cart"), "--link cart: payments.csv has no such column; did you mean 'card'?"),
        (("--link", "nearest:0"), "--link nearest:0: a number of nearest rows above 0 is needed"),
        (("--link", "outcome"), "--link outcome: this column of payments.csv is the label; name another one"),
    ):
        found = fit(table, *more)
        assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
        assert words in found.err
    found = outcome("fit", "karate", "-o", "m", "--link", "card")
    assert (found.code, "--link: is for tables" in found.err) == (2, True)
