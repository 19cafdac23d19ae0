import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import lignn
from tests.cli.commands import outcome, run
from tests.cli.conftest import write_tables

COLUMNS = ["id", "label", "confidence", "evidence", "given", "p_blue", "p_red"]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_table_is_the_classifiers_decision(place: Path) -> None:
    said = run("predict", "model", "-o", "out.csv")
    assert said.startswith("12 predictions, mean confidence 0.")
    table = rows((place / "out.csv").read_text())
    decision = lignn.load("model").decision()
    assert list(table[0]) == COLUMNS
    assert [row["id"] for row in table] == list("abcdefghijkl")
    assert [row["label"] for row in table] == decision.names.tolist()
    assert [row["given"] for row in table] == decision.given.tolist()
    assert [row["id"] for row in table if not row["given"]] == ["g", "h"]
    p = np.array([[float(row["p_blue"]), float(row["p_red"])] for row in table])
    np.testing.assert_allclose(p, decision.probabilities, rtol=1e-6)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose([float(row["confidence"]) for row in table], p.max(1), rtol=1e-6)


def test_without_a_file_the_table_is_printed(place: Path) -> None:
    run("predict", "model", "-o", "out.csv")
    result = outcome("predict", "model")
    assert result.out == (place / "out.csv").read_text()
    assert result.err == ""


def test_parquet_holds_the_same(place: Path) -> None:
    run("predict", "model", "-o", "out.parquet")
    table = pq.read_table(place / "out.parquet").to_pydict()
    assert list(table) == COLUMNS
    np.testing.assert_array_equal(table["p_red"], lignn.load("model").decision().probabilities[:, 1])


def test_json_and_nothing_else(place: Path) -> None:
    result = outcome("predict", "model", "-o", "out.csv", "--json")
    record = json.loads(result.out)
    assert result.err == ""
    assert record["nodes"] == 12
    assert sum(record["labels"].values()) == 12
    assert record["no_evidence"] == 0
    assert record["file"] == "out.csv"
    decision = lignn.load("model").decision()
    assert record["given"] == 10
    assert record["given_otherwise"] == np.sum((decision.names != decision.given)[decision.known])
    printed = json.loads(run("predict", "model", "--json"))["predictions"]
    assert [row["id"] for row in printed] == list("abcdefghijkl")
    assert printed[6]["given"] is None


def test_known_labels_that_are_predicted_otherwise_are_told(place: Path) -> None:
    (place / "new.csv").write_text("id,label\na,blue\n")
    told = run("predict", "model", "--labels", "new.csv", "-o", "out.csv")
    table = rows((place / "out.csv").read_text())
    assert table[0]["given"] == "blue"
    otherwise = sum(bool(row["given"]) and row["given"] != row["label"] for row in table)
    assert otherwise
    assert f"known labels that are predicted otherwise: {otherwise} of 10" in told


def test_the_models_own_graph_by_name_gives_the_same(place: Path) -> None:
    assert run("predict", "model", "--graph", "mine") == run("predict", "model")


def test_features_in_another_order_are_the_same_features(place: Path) -> None:
    header, *lines = (place / "mine" / "nodes.csv").read_text().splitlines()
    assert header == "id,label,x0,x1"
    cells = [["id", "label", "x0", "x1"], *(line.split(",") for line in lines)]
    nodes = "".join(f"{x1},{name},{x0},{label}\n" for name, label, x0, x1 in cells)
    write_tables(place / "other", nodes)
    assert run("predict", "model", "--graph", "other") == run("predict", "model")


def test_new_labels_take_effect(place: Path) -> None:
    (place / "new.csv").write_text("id,label\ng,red\na,\n")
    told = {row["id"]: row for row in rows(run("predict", "model", "--labels", "new.csv"))}
    classifier = lignn.load("model")
    classifier.update_labels({"g": "red", "a": None})
    assert (told["g"]["given"], told["a"]["given"]) == ("red", "")
    expected = classifier.decision().probabilities[:, 1]
    np.testing.assert_allclose([float(row["p_red"]) for row in told.values()], expected, rtol=1e-6)


def test_nodes_without_evidence_are_counted(place: Path) -> None:
    with (place / "mine" / "nodes.csv").open("a") as file:
        file.write("lonely,,0,0\n")
    out = run("predict", "model", "--graph", "mine", "-o", "out.csv")
    assert "without evidence: 1; no known label reaches them" in out
    assert rows((place / "out.csv").read_text())[-1]["evidence"] == "false"


def test_an_existing_file_is_replaced_whole(place: Path) -> None:
    (place / "out.csv").write_text("old" * 10_000)
    run("predict", "model", "-o", "out.csv")
    assert (place / "out.csv").read_text().splitlines()[0].replace('"', "") == ",".join(COLUMNS)


@pytest.mark.parametrize("folder", [".", ".."])
def test_models_work_from_anywhere(place: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    expected = run("predict", "model")
    monkeypatch.chdir(place / folder)
    assert run("predict", place / "model") == expected


def test_undirected_is_for_another_graph(place: Path) -> None:
    result = outcome("predict", "model", "--undirected", "-o", "out.csv")
    assert result.code == 2
    assert result.err.startswith("error: --undirected: the model's own graph stays")
    assert not (place / "out.csv").exists()


def test_a_model_follows_the_edges_of_other_graphs_as_those_of_its_own(place: Path) -> None:
    run("fit", "mine", "-o", "both", "--undirected", "--max-epochs", "2")
    assert outcome("predict", "both", "--graph", "mine", "--undirected", "-o", "out.csv").err == ""
    both = (place / "out.csv").read_text()
    assert outcome("predict", "both", "--graph", "mine", "-o", "out.csv").err == ""
    assert (place / "out.csv").read_text() == both


def test_labels_that_another_graph_holds_back_are_no_inputs(place: Path) -> None:
    graph = lignn.Graph.read("mine")
    splits = [lignn.Split.from_indices(12, train, [], test) for train, test in (([0, 1], [2, 3]), ([2, 3], [0, 1]))]
    other = graph.replace(x=graph.x + 1)
    other.replace(splits=splits[:1]).write("one.npz")
    other.replace(splits=splits).write("two.npz")
    given = {row["id"]: row["given"] for row in rows(run("predict", "model", "--graph", "one.npz"))}
    assert [name for name, label in given.items() if not label] == ["c", "d", "g", "h"]
    result = outcome("predict", "model", "--graph", "two.npz")
    assert result.code == 2
    assert "has 2 splits" in result.err
    assert "--split" in result.err
    assert run("predict", "model", "--graph", "two.npz", "--split", 0) == run("predict", "model", "--graph", "one.npz")
    given = {row["id"]: row["given"] for row in rows(run("predict", "model", "--graph", "two.npz", "--split", 1))}
    assert [name for name, label in given.items() if not label] == ["a", "b", "g", "h"]
    for arguments, message in (
        (("--graph", "two.npz", "--split", 2), "--split 2: two has 2 splits, counted from 0"),
        (("--split", 0), "--split: the model's own graph keeps"),
    ):
        result = outcome("predict", "model", *arguments)
        assert result.code == 2
        assert message in result.err
