"""Accounts and payments on the command line: one command from two tables to predictions."""

import csv

import pyarrow.csv
import pytest

from tests.classifier.test_carried import M, N, accounts, payments
from tests.cli.commands import outcome, run


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(accounts([None if i < 4 else "x" if i % 2 else "y" for i in range(N)]), "accounts.csv")
    pyarrow.csv.write_csv(payments(), "payments.csv")


def test_accounts_and_payments_in_one_command():
    found = outcome("fit", "accounts.csv", "payments.csv", "--method", "boosted", "-o", "m")
    assert found.code == 0
    assert found.reading[0].startswith(
        "accounts.csv: id = id, label = label; nodes that only edges name: 3, for example "
    )
    assert found.reading[1] == "payments.csv: source = from, target = to, 3 features; in the order of day"
    run("predict", "m", "-o", "p.csv")
    with open("p.csv", encoding="utf-8") as file:
        assert sorted(row["id"] for row in csv.DictReader(file)) == sorted(f"a{i}" for i in range(N + 3))
    pyarrow.csv.write_csv(payments(50), "few.csv")
    assert "predictions" in run("predict", "m", "--graph", "accounts.csv", "--edges", "few.csv", "-o", "q.csv")


def test_inspect_says_what_edges_carry():
    found = run("inspect", "accounts.csv", "payments.csv")
    lines = [" ".join(line.split()) for line in found.splitlines()]
    assert any(
        line.startswith("amount feature number 0") and "sum, mean and last, at both ends" in line for line in lines
    )
    assert any(line.startswith("kind feature category 0 3") and "share of each, at both ends" in line for line in lines)
    assert f"edges {2 * M} (each stored in both directions, the reversed ones as types of their own)" in lines
    assert "repeat another" not in found


def test_a_wrong_order_is_told_in_a_line():
    found = outcome("fit", "accounts.csv", "payments.csv", "--order", "dya", "-o", "m")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "--order dya: payments.csv has no such column; did you mean 'day'?" in found.err
