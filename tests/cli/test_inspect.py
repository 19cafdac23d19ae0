"""`lignn inspect` on small tables: what it prints, what it writes, and that it trains only for suspects."""

import json

import pytest

import lignn
from lignn.classifier import fit
from tests.cli.commands import outcome, run
from tests.cli.conftest import EDGES, NODES, write_tables

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")


def fails(*_, **__):
    raise AssertionError("nothing may be trained")


def lines(text):
    """The cells of each line that is printed."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_what_is_printed(place, monkeypatch):
    monkeypatch.setattr(fit, "fit", fails)
    result = outcome("inspect", "mine")
    assert result.reading == [
        "nodes.csv: id = id, label = label, 2 features",
        "edges.csv: source = source, target = target",
    ]
    found = lines(result.out)
    for line in (
        ["nodes", "12"],
        ["edges", "12 (directed)"],
        ["connected components", "1 (the largest has 12 nodes)"],
        ["known labels", "10"],
        ["nodes that a known label reaches", "12 (100.0%)"],
        ["label", "label", "category", "2", "2", "'blue', 'red'", "learned and predicted"],
        ["x0", "feature", "number", "0", "3", "0 … 1", "scaled"],
        ["target", "target", "id", "0", "12", "where an edge ends"],
        ["blue", "5", "50.0%"],
    ):
        assert line in found
    assert (result.code, result.err) == (0, "")
    assert not list(place.glob("*.html"))


def test_json_and_nothing_else(place):
    result = outcome("inspect", "mine", "--undirected", "--ignore", "x1", "--column", "label=label", "--json")
    assert (result.code, result.err, result.reading) == (0, "", [])
    record = json.loads(result.out)
    assert (record["edges"], record["directed"], record["degrees"]["isolated"]) == ({"edges": 24}, False, 0)
    assert record["classes"] == {"blue": 5, "red": 5}
    # Of the ring's 12 edges 9 join two labels, all of them red with blue.
    assert record["transitions"] == [[0, 1], [1, 0]]
    assert record["homophily"] == {"edge": 0, "node": 0, "adjusted": -1}
    assert [(c["name"], c["role"]) for c in record["columns"]][2:4] == [("x1", "ignored"), ("x0", "feature")]
    assert record["evidence"] == {"without": 0, "without_if_undirected": 0, "nodes": 12}
    assert (record["warnings"], record["suspects"], record["page"]) == ([], None, None)


def test_two_files_and_a_warning(place):
    nodes = NODES.replace("label,x0,x1", "label,x0,card")
    rows = [line.rsplit(",", 1)[0] + f",{10**12 + i}" for i, line in enumerate(nodes.splitlines()[1:])]
    write_tables(place / "own", "\n".join([nodes.splitlines()[0], *rows]), EDGES + "a,b\n")
    out = run("inspect", "own/nodes.csv", "own/edges.csv")
    assert "warning: 'card' looks like an id and is ignored; if the edges name nodes by it, say --column id=card" in out
    assert "warning: 1 edges repeat another" in out


def test_the_page(place):
    out = run("inspect", "mine", "-o", "page.html")
    assert out.endswith("Page: page.html\n")
    text = (place / "page.html").read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml") == 3
    assert "What is in mine?" in text


def test_suspects_of_a_model(place):
    found = lignn.load("model").suspects(2)
    assert run("inspect", "--suspects", "model", "--count", 2) == f"{found}\n"
    record = json.loads(run("inspect", "mine", "--suspects", "model", "--count", 2, "-o", "page.html", "--json"))
    assert record["suspects"] == json.loads(json.dumps(found.plain()))
    assert (record["nodes"], record["page"]) == (12, "page.html")
    assert "Suspects" in (place / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "GRAPH is missing: name the graph to inspect, or a model by --suspects MODEL"),
        (["--suspects", "model", "-o", "p.html"], "-o is for a graph; name the GRAPH to inspect"),
        (["--suspects", "model", "--undirected"], "--undirected is for a graph"),
        (["--suspects", "model", "--missing="], "--missing is for a graph"),
        (["nowhere", "-o", "p.html"], "nowhere: there is no such folder or file"),
        (["mine", "-o", "p.pdf"], "p.pdf: the report is an .html file"),
        (["mine", "-o", "p.html", "--column", "lable=x"], "there is no role or kind 'lable'"),
        (["mine", "-o", "p.html", "--column", "label"], "'label' is not of the form ROLE=NAME"),
        (["mine", "-o", "p.html", "--ignore", "x9"], "neither"),
        (["mine", "-o", "p.html", "--suspects", "no"], "no: there is no model here"),
        (["mine", "-o", "p.html", "--suspects", "model", "--count", "0"], "--count"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(place, arguments, message):
    before = sorted(place.rglob("*"))
    result = outcome("inspect", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert sum(line.startswith("error: ") for line in result.err.splitlines()) == 1
    assert sorted(place.rglob("*")) == before


def test_a_model_without_its_graph_has_no_suspects(place):
    run("fit", "mine", "-o", "bare", "--max-epochs", 2, "--no-graph")
    result = outcome("inspect", "--suspects", "bare")
    assert (result.code, result.out) == (2, "")
    assert "the model was saved without the graph it was trained on" in result.err


def test_test_labels_change_nothing(place):
    """Whatever the labels of test nodes are, all that is printed and written is the same."""
    header, *rows = NODES.splitlines()
    parts = ["train", "val", "test"] * 4
    flip = {"red": "blue", "blue": "red", "": ""}

    def printed(flipped):
        lines = [header + ",split"]
        for row, part in zip(rows, parts, strict=True):
            name, label, *x = row.split(",")
            lines.append(",".join([name, flip[label] if part in flipped else label, *x, part]))
        write_tables(place / "own", "\n".join(lines))
        out = run("inspect", "own", "-o", "p.html", "--json")
        return out, (place / "p.html").read_bytes()

    assert printed(()) == printed(("test",))
    assert printed(()) != printed(("train",))
