"""One table on the command line: from a file to predictions of its rows."""

import csv
import json

import pyarrow.csv
import pytest

from tests.cli.commands import outcome, run
from tests.evaluation import test_proposed_links as proposals
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


def test_inspect_proposes_columns_to_link_and_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = proposals.table()
    pyarrow.csv.write_csv(given, "payments.csv")
    lines = run("inspect", "payments.csv", "--column", "label=label").splitlines()
    assert lines[-4] == "Values of these columns name something that rows share; to join rows through them:"
    assert lines[-3].startswith("  card: ")
    command = "lignn fit payments.csv --column=label=label --link card --link shop_id --order time -o model"
    assert lines[-1] == f"  {command}"
    record = json.loads(run("inspect", "payments.csv", "--json"))
    assert [column["name"] for column in record["proposal"]["columns"]] == ["card", "shop_id"]
    assert record["command"] == command.replace("--column=label=label ", "")
    assert outcome(*command.split()[1:], "--method", "boosted").code == 0
    linked_before = json.loads(run("inspect", "payments.csv", "--link", "card", "--json"))
    assert linked_before["proposal"] is None
    assert linked_before["command"] == "lignn fit payments.csv --column=label=label --link=card -o model"


def test_labels_of_another_table_have_no_part_in_how_its_rows_are_joined(table):
    """Its labels may be inputs, but edges and what follows from them are those of the rows."""
    fit(table, *LINKS, "--method", "boosted")
    found = []
    for name, labels in (("one.csv", ["yes", "no"]), ("two.csv", ["no", "yes"]), ("none.csv", ["", ""])):
        rows = payments().set_column(0, "outcome", [labels * (N // 2)]).append_column("split", [["test"] * N])
        pyarrow.csv.write_csv(rows, name)
        run("predict", "m", "--graph", name, "-o", f"p-{name}")
        with open(f"p-{name}", encoding="utf-8") as file:
            found.append([{k: v for k, v in row.items() if k != "given"} for row in csv.DictReader(file)])
    assert len(found[0]) == N
    assert found[0] == found[1] == found[2]


def test_a_table_without_a_column_of_labels_asks_for_its_name(table):
    found = outcome("fit", table, "-o", "m", "--method", "boosted")
    assert (found.code, found.out) == (2, "")
    assert "no node has a label; at least two classes need one" in found.err
    assert "say which column of payments.csv holds the labels: --column label=NAME" in found.err
