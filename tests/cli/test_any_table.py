"""Tables as people have them: one command from the files to a prediction, as good as on the table cleaned by hand."""

import csv
import json
import shlex

import numpy as np
import pytest

from tests.cli.commands import outcome

N = 600
CLASSES = ("no", "yes")
FIT = ("--method", "label_input", "--backbone", "mlp", "--max-epochs", "60", "--seed", "3", "--json")


def write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def score(folder, truth, *arguments):
    """Fit and predict by one command each; return the share of unlabelled nodes that are right."""
    model, out = folder / "model", folder / "predictions.csv"
    result = outcome("fit", *arguments, "-o", str(model), *FIT)
    assert result.code == 0, result.err
    assert outcome("predict", str(model), "-o", str(out)).code == 0
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return np.mean([row["label"] == truth[row["id"]] for row in rows if row["id"] in truth])


@pytest.fixture
def people():
    """600 customers of two classes, whose referrals mostly stay within a class; the last half is unlabelled."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, N)
    revenue = 1200 + 900 * y + rng.normal(0, 350, N)
    code = rng.integers(0, 10, N) * 2 + y
    edges = [(i, j) for i, j in rng.integers(0, N, (8000, 2)) if i != j and (y[i] == y[j]) == (rng.random() < 0.9)]
    return y, revenue, code, edges[:1500], {f"c{i}": CLASSES[y[i]] for i in range(N // 2, N)}


def label(y, i):
    return CLASSES[y[i]] if i < N // 2 else ""


def test_customers_and_referrals(tmp_path, people):
    """Usual names, thousands, dates, repeated rows, ids without a row, empty weights."""
    y, revenue, _, edges, truth = people
    days = [(f"{i % 28 + 1:02}/{i % 12 + 1:02}/2024", f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}") for i in range(N)]
    rows = [[f"c{i}", f"{revenue[i]:,.2f}", days[i][0], f"{i % 7:05}", label(y, i)] for i in range(N)]
    links = [[f"c{i}", f"c{j}", number % 3 + 1] for number, (i, j) in enumerate(edges)]
    header = ["customer_id", "revenue", "since", "zip", "label"]
    write(tmp_path / "customers.csv", header, [*rows, rows[3], rows[9], ["c5", "12", days[5][0], "00001", ""]])
    messy = [*links, ["c1", "c999", 2], ["c2", "", 1], ["c3", "c4", ""]]
    write(tmp_path / "referrals.csv", ["from_customer", "to_customer", "weight"], messy)
    files = (str(tmp_path / "customers.csv"), str(tmp_path / "referrals.csv"))
    refused = outcome("fit", *files, "-o", str(tmp_path / "model"))
    assert refused.code == 2
    assert [line.split("/")[-1].split(":")[0] for line in refused.err.splitlines()] == [
        "customers.csv, line 604, column 'customer_id'",
        "referrals.csv, line 1503, column 'to_customer'",
        "referrals.csv, line 1504, column 'weight'",
        "correct them, or leave out 3 rows by --skip-bad",
    ]
    ours = score(tmp_path, truth, *files, "--skip-bad")
    clean = [[name, revenue[i], days[i][1], f"zip {zip_}", y_] for i, (name, _, _, zip_, y_) in enumerate(rows)]
    write(tmp_path / "nodes.csv", ["id", *header[1:]], clean)
    write(tmp_path / "edges.csv", ["source", "target", "weight"], links)
    by_hand = score(tmp_path, truth, str(tmp_path / "nodes.csv"), str(tmp_path / "edges.csv"))
    assert by_hand > 0.85
    assert ours >= by_hand - 0.01


def test_codes_that_are_whole_numbers(tmp_path, people):
    y, _, code, edges, truth = people
    links = [[f"c{i}", f"c{j}"] for i, j in edges]
    for folder, cell in (("codes", str), ("texts", lambda value: f"dorm {value}")):
        (tmp_path / folder).mkdir()
        rows = [[f"c{i}", cell(code[i]), label(y, i)] for i in range(N)]
        write(tmp_path / folder / "nodes.csv", ["id", "dorm", "label"], rows)
        write(tmp_path / folder / "edges.csv", ["source", "target"], links)
    ours = score(tmp_path, truth, str(tmp_path / "codes"), "--column", "category=dorm")
    assert ours >= score(tmp_path, truth, str(tmp_path / "texts")) - 0.01
    assert ours > 0.95


def test_edges_target_and_lists_of_features(tmp_path, people):
    """A public form: the ends of the edges are values of new_id, and features are lists in a JSON file."""
    y, _, code, edges, truth = people
    mine = tmp_path / "twitch"
    mine.mkdir()
    write(mine / "x_target.csv", ["id", "label", "new_id"], [[10**8 + 7 * i, label(y, i), i] for i in range(N)])
    write(mine / "x_edges.csv", ["from", "to"], edges)
    (mine / "x_features.json").write_text(json.dumps({str(i): [int(code[i]), 40 + i % 5] for i in range(N)}))
    numbered = {name.removeprefix("c"): value for name, value in truth.items()}
    ours = score(tmp_path, numbered, str(mine))
    (tmp_path / "clean").mkdir()
    rows = [[i, f"f{code[i]} f{40 + i % 5}", label(y, i)] for i in range(N)]
    write(tmp_path / "clean" / "nodes.csv", ["id", "words", "label"], rows)
    write(tmp_path / "clean" / "edges.csv", ["source", "target"], edges)
    assert ours >= score(tmp_path, numbered, str(tmp_path / "clean"), "--column", "text=words") - 0.01
    (mine / "x_features.json").write_text('{"x": [1]}')
    assert "x_features.json: 'x' is not the id of a node" in outcome("fit", str(mine), "-o", "m").err


@pytest.mark.parametrize(
    "header",
    ["user_id,user_id2", "src,dst", "source_id,target_id", "from_user,to_user", "sender,receiver", "referrer,friend"],
)
def test_usual_names_and_columns_that_hold_the_ids(tmp_path, header):
    nodes = "customer_id,label,age\n" + "".join(f"k{i},{'xy'[i % 2]},{i * 7 % 5}\n" for i in range(8))
    (tmp_path / "customers.csv").write_text(nodes)
    edges = f"{header},note\n" + "".join(f"k{i},k{i + 1},n{i}\n" for i in range(7))
    (tmp_path / "links.csv").write_text(edges)
    files = [str(tmp_path / name) for name in ("customers.csv", "links.csv")]
    result = outcome("inspect", *files, "--json")
    assert result.code == 0, result.err
    source, target = header.split(",")
    command = json.loads(result.out)["command"]
    assert shlex.split(command) == [
        *("lignn", "fit", *files, "--column=id=customer_id", "--column=label=label"),
        *(f"--column=source={source}", f"--column=target={target}", "-o", "model"),
    ]
    printed = outcome("inspect", *files)
    assert command in printed.out
    again = shlex.split(command)[1:-1]
    assert outcome(*again, str(tmp_path / "model"), "--max-epochs", "1", "--method", "lignn").code == 0
