"""What people get wrong: one sentence that names the place, an exit code, and files as they were."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lignn.classifier import saving
from tests.cli.commands import outcome, run
from tests.cli.conftest import EDGES, NODES, write_tables

FIT = ("fit", "mine", "-o", "new", "--max-epochs", "1")
COMPARE = ("compare", "mine", "--jobs", "1", "--only", "lpa", "--runs", "1", "--max-epochs", "1")
PREDICT = ("predict", "model", "-o", "out.csv")


def content(folder: Path) -> dict[str, bytes | None]:
    files = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in files}


def check(place: Path, arguments: tuple[str, ...], message: str, code: int = 2) -> None:
    """The command fails in one sentence and changes nothing."""
    before = content(place)
    result = outcome(*arguments)
    assert result.code == code, result.err
    assert result.out == ""
    lines = [line for line in result.err.splitlines() if not line.startswith("correct them, or leave out ")]
    assert len(lines) == 1, result.err
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert content(place) == before


TABLES: dict[str, tuple[str | bytes, str | bytes, str]] = {
    "no id": (NODES.replace("id,", "key,", 1), "source,target\nu,v\n", "mine/nodes.csv: the column 'id' is missing"),
    "no source": (NODES, "one,target\n1,b\n2,c\n", "mine/edges.csv: the column 'source' is missing"),
    "no target": (NODES, "source,other\na,1\nb,2\n", "mine/edges.csv: the column 'target' is missing"),
    "decimal comma": (NODES.replace("0.5,1", "0,5,1"), EDGES, "nodes.csv, line 7: 5 cells, but the header names 4"),
    "short row": (NODES.replace("0.5,1", "0.5"), EDGES, "nodes.csv, line 7: 3 cells, but the header names 4 columns"),
    "unknown id": (NODES, EDGES + "a,z\n", "edges.csv, line 14, column 'target': 'z' is not the id of a node"),
    "huge id": (NODES, EDGES + f"{10**30},a\n", f"line 14, column 'source': '{10**30}' is not the id of a node"),
    "id twice": (NODES + "a,red,1,1\n", EDGES, "line 14, column 'id': the id 'a' is already used in line 2"),
    "no node id": (NODES.replace("f,", ",", 1), EDGES.replace("f", "e"), "line 7, column 'id': the id is empty"),
    "open quote": (NODES.replace("f,blue", 'f,"blue'), EDGES, "nodes.csv, line 7"),
    "empty nodes": ("", EDGES, "mine/nodes.csv: is empty; the first line must name the columns"),
    "empty edges": (NODES, "", "mine/edges.csv: is empty"),
    "no nodes": ("id,label\n", EDGES, "mine/nodes.csv: has a header but no nodes"),
    "no edges": (NODES, "source,target\n", "mine has no edges, so no label can reach another node"),
    "Latin-1": (NODES.replace("f,blue", "f,blå").encode("latin-1"), EDGES, "line 7, column 'label': is not UTF-8"),
    "UTF-16": (NODES.encode("utf-16"), EDGES, "mine/nodes.csv, line 1: looks like UTF-16 text; save the file as UTF-8"),
    "column twice": (NODES.replace("x1", "x0"), EDGES, "nodes.csv, column 4: a second column is named 'x0'"),
    "label and labels": (NODES.replace("x1", "labels"), EDGES, "nodes.csv: 'label' and 'labels' may hold the label"),
    "word in split": (
        "id,label,split\na,red,train\nb,blue,validate\n",
        "source,target\na,b\n",
        "nodes.csv, line 3, column 'split': 'validate' is not one of train, val, test",
    ),
    "negative weight": (NODES, "source,target,weight\na,b,-1\n", "line 2, column 'weight': '-1' is negative"),
    "heavy weight": (NODES, "source,target,weight\na,b,heavy\n", "line 2, column 'weight': 'heavy' is not a number"),
    "great weight": (NODES, "source,target,weight\na,b,3e38\n", "line 2, column 'weight': '3e38' is too large"),
    "two labels": (NODES.replace("x0", "y").replace("label", "Class").replace(",0.5", ",2"), EDGES,
                   "nodes.csv: 'Class' and 'y' may hold the label; say which: --column label=Class"),
    "two pairs of ends": (NODES, "u,v,from,to\na,b,b,c\n", "edges.csv: several columns may hold the ends of edges"),
    "other ids": (NODES, EDGES.replace("a,b", "A,b"), "column 'source': 'A' is not the id of a node"),
    "one class": (NODES.replace("blue", "red"), EDGES, "mine: labels (y): a single class, every labelled node"),
    "no labels": (NODES.replace("blue", "").replace("red", ""), EDGES, "mine: no node has a label"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_tables(place: Path, case: str) -> None:
    nodes, edges, message = TABLES[case]
    write_tables(place / "mine", nodes, edges)
    check(place, (*FIT, "--strict") if "is not the id of a node" in message else FIT, message)


def damaged_npz(place: Path) -> None:
    (place / "g.npz").write_bytes(b"PK\3\4 not really")


def foreign_npz(place: Path) -> None:
    np.savez(place / "g.npz", edge_indx=np.zeros((2, 1), int))


def far_edge(place: Path) -> None:
    np.savez(place / "g.npz", edge_index=np.array([[0], [9]]), y=np.array([0, 1]))


def pickled(place: Path) -> None:
    np.savez(place / "g.npz", edge_index=np.array([{}], dtype=object))


def not_a_graph(place: Path) -> None:
    (place / "g.doc").write_text("nodes")


def nothing(place: Path) -> None:
    """Everything as it is."""


def no_nodes_file(place: Path) -> None:
    (place / "mine" / "nodes.csv").unlink()


def nodes_dangle(place: Path) -> None:
    no_nodes_file(place)
    (place / "mine" / "nodes.csv").symlink_to("nowhere")


def links_in_a_circle(place: Path) -> None:
    (place / "circle").symlink_to("circle")


def no_edges_file(place: Path) -> None:
    (place / "mine" / "edges.csv").unlink()


def nodes_folder(place: Path) -> None:
    no_nodes_file(place)
    (place / "mine" / "nodes.csv").mkdir()


def nodes_twice(place: Path) -> None:
    (place / "mine" / "nodes.parquet").touch()


def damaged_parquet(place: Path) -> None:
    no_nodes_file(place)
    (place / "mine" / "nodes.parquet").write_bytes(b"PAR1 and no more")


def in_mine(name: str, text: str) -> Callable[[Path], None]:
    def prepare(place: Path) -> None:
        (place / "mine" / name).write_text(text)

    return prepare


def features(rows: int, nodes: str = "id,label\na,red\nb,blue\n") -> Callable[[Path], None]:
    def prepare(place: Path) -> None:
        write_tables(place / "mine", nodes, "source,target\na,b\n")
        np.save(place / "mine" / "features.npy", np.ones((rows, 2)))

    return prepare


GRAPHS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "unknown dataset": (nothing, "karat", "karat: there is no such folder or file; unknown dataset 'karat'; "),
    "no folder": (nothing, "./yours", "yours: there is no such folder or file"),
    "no file": (nothing, "g.npz", "g.npz: cannot be read: No such file or directory"),
    "damaged npz": (damaged_npz, "g.npz", "g.npz: not a whole .npz file"),
    "foreign npz": (foreign_npz, "g.npz", "g.npz: unknown array 'edge_indx'; did you mean 'edge_index'?"),
    "edge to nowhere": (far_edge, "g.npz", "g.npz: edge_index: "),
    "pickled objects": (pickled, "g.npz", "g.npz: the array 'edge_index' holds Python objects"),
    "text file": (not_a_graph, "g.doc", "g.doc: not a graph; give a folder with nodes.csv and edges.csv"),
    "no nodes.csv": (no_nodes_file, "mine", "mine: there is no nodes.csv and no nodes.parquet"),
    "link to nothing": (nodes_dangle, "mine", "error: mine/nodes.csv: cannot be read: No such file or directory"),
    "link to itself": (links_in_a_circle, "circle", "error: circle: cannot be read: Too many levels of symbolic links"),
    "long path": (nothing, "./" + "x" * 300, "xxx: cannot be read: File name too long"),
    "long file": (nothing, "x" * 300 + ".npz", "xxx.npz: cannot be read: File name too long"),
    "long name": (nothing, "x" * 300, "xxx: there is no such folder or file; unknown dataset"),
    "no edges.csv": (no_edges_file, "mine", "mine: there is no edges.csv and no edges.parquet"),
    "folder for a file": (nodes_folder, "mine", "mine/nodes.csv: is a folder, a file is needed"),
    "csv and parquet": (nodes_twice, "mine", "mine: both nodes.csv and nodes.parquet exist"),
    "damaged parquet": (damaged_parquet, "mine", "mine/nodes.parquet: is not a whole Parquet file"),
    "damaged features": (in_mine("features.npy", "no"), "mine", "mine/features.npy: not a whole .npy file"),
    "features twice": (features(2, "id,label,x\na,red,1\nb,blue,1\n"), "mine", "mine: features both as columns"),
    "features for others": (features(5), "mine", "mine/features.npy: has 5 rows, but there are 2 nodes"),
    "no JSON": (in_mine("graph.json", "{"), "mine", "mine/graph.json: is not JSON"),
    "unknown entry": (in_mine("graph.json", '{"clases": []}'), "mine", "mine/graph.json: unknown entry 'clases'"),
    "label of no class": (in_mine("graph.json", '{"classes": ["red"]}'), "mine", "'blue' is not among the classes in"),
    "newer notes": (in_mine("graph.json", '{"format": 99}'), "mine", "mine/graph.json: was written by a newer lignn"),
}  # fmt: skip


@pytest.mark.parametrize("case", GRAPHS)
def test_graphs(place: Path, case: str) -> None:
    prepare, graph, message = GRAPHS[case]
    prepare(place)
    if case == "label of no class":  # three nodes have it, and every place is named
        result = outcome("fit", graph, "-o", "new")
        assert result.code == 2
        assert all(message in line for line in result.err.splitlines()[:-1])
        return
    check(place, ("fit", graph, "-o", "new"), message)


OPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown option": ((*FIT, "--mask-rat", "1"), "No such option: --mask-rat (Possible options: --mask-rate"),
    "unknown verb": (("fitt",), "No such command 'fitt'. Did you mean 'fit'?"),
    "no graph": (("fit",), "Missing argument 'GRAPH'"),
    "no output": (("fit", "mine"), "Missing option '--out'"),
    "text for a number": ((*FIT, "--hidden", "many"), "Invalid value for '--hidden'"),
    "method": ((*FIT, "--method", "lgnn"), "method 'lgnn' is unknown; did you mean 'lignn'?"),
    "backbone": ((*FIT, "--backbone", "jkent"), "backbone 'jkent' is unknown; did you mean 'jknet'?"),
    "preset": ((*FIT, "--preset", "papr"), "preset 'papr' is unknown; did you mean 'paper'?"),
    "solver": ((*FIT, "--solver", "andersen"), "solver 'andersen' is unknown; did you mean 'anderson'?"),
    "gradient": ((*FIT, "--gradient", "exat"), "gradient 'exat' is unknown; did you mean 'exact'?"),
    "mask rate": ((*FIT, "--mask-rate", "1.5"), "mask_rate"),
    "mask rate in words": ((*FIT, "--mask-rate", "adaptiv"), "mask_rate"),
    "hidden": ((*FIT, "--hidden", "0"), "hidden: at least 1 is needed"),
    "dropout": ((*FIT, "--dropout", "2"), "dropout"),
    "feature mask": ((*FIT, "--feature-mask", "1"), "feature_mask"),
    "lr": ((*FIT, "--lr", "-1"), "lr"),
    "epochs": (("fit", "mine", "-o", "new", "--max-epochs", "0"), "max_epochs"),
    "tolerance": ((*FIT, "--tol", "-1"), "tol"),
    "budget": ((*FIT, "--max-steps", "-1"), "max_steps"),
    "measured": ((*FIT, "--contraction", "measured"), "contraction 'measured' is gone; use 'proved', which promises"),
    "precision": ((*FIT, "--precision", "float16"), "precision 'float16' is unknown"),
    "other method's": ((*FIT, "--method", "lpa", "--mask-rate", "0.5"), "mask_rate: method 'lpa' has no such"),
    "backbone option": ((*FIT, "--backbone-options", "layers=3"), "layers"),
    "method option": ((*FIT, "--method", "lpa", "--method-options", "lambda=3"), "method 'lpa' has no option 'lambda'"),
    "not a number": ((*FIT, "--backbone-options", "num_layers=abc"), "num_layers: a whole number is needed, got 'abc'"),
    "seed": ((*FIT, "--seed", "99999999999999999999999"), "seed: a whole number of at least 0 and below 2^63"),
    "no assignment": (
        (*FIT, "--backbone-options", "num_layers"),
        "Invalid value for --backbone-options: 'num_layers' is not of the form name=value",
    ),
    "jobs": (("compare", "mine", "--jobs", "0"), "Invalid value for '--jobs'"),
    "what to compare": (("compare", "mine", "--only", "lpaa"), "no method 'lpaa' to compare; did you mean 'lpa'?"),
    "nothing to compare": (("compare", "mine", "--only", "gcn"), "nothing to compare gcn with"),
    "report": (("compare", "mine", "-o", "report.pdf"), "report.pdf: the report is an .html file"),
    "report in no folder": (("compare", "mine", "-o", "no/report.html"), "no/report.html: there is no folder no"),
    "nothing to tune": (("tune", "mine", "--method", "lpa"), "lpa has nothing to train and nothing to tune"),
    "trees to tune": (
        ("tune", "mine", "--method", "label_input", "--method-options", "base=boosted"),
        "label_input over boosted has nothing to train and nothing to tune",
    ),
    "predictions": (("predict", "model", "-o", "out.txt"), "out.txt: predictions are written as .csv or .parquet"),
    "no role": ((*FIT, "--column", "lable=x0"), "there is no role or kind 'lable'; did you mean 'label'?"),
    "no column": ((*FIT, "--column", "id=key"), "nodes.csv: there is no column 'key' (--column id=key)"),
    "two roles": ((*FIT, "--column", "id=x0", "--column", "time=x0"), "column 'x0': is given two roles, id and time"),
    "no assignment of a role": ((*FIT, "--column", "id"), "'id' is not of the form ROLE=NAME"),
    "nothing to ignore": ((*FIT, "--ignore", "z"), "--ignore z: neither mine/nodes.csv nor mine/edges.csv has this"),
    "wrong time": ((*FIT, "--column", "time=label"), "(times): 'red' is neither a number nor a date (line 2)"),
    "ids twice": ((*FIT, "--column", "id=x0"), "column 'x0' (ids): the id '1' is already used in line 2"),
    "roles of a dataset": (("fit", "karate", "-o", "new", "--column", "id=a"), "--column: is for tables"),
    "one table": (("fit", "mine/nodes.csv", "-o", "new"), "is the nodes of a graph whose edges are in edges.csv"),
    "no table of edges": (("fit", "mine/nodes.csv", "no.csv", "-o", "new"), "no.csv: cannot be read: No such file"),
    "no interrupted run": ((*FIT, "--resume"), "new.checkpoint: there is no interrupted run to resume"),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS)
def test_options(place: Path, case: str) -> None:
    check(place, *OPTIONS[case])


CONFIGS: dict[str, tuple[str, str]] = {
    "unknown key": ("mask_rat = 0.5", "a.toml: there is no setting 'mask_rat'; did you mean 'mask_rate'?"),
    "no TOML": ("hidden: 3", "a.toml: is not TOML: Expected '=' after a key in a key/value pair (at line 1, column 7)"),
    "wrong type": ('hidden = "wide"', "hidden: a whole number is needed, got 'wide'"),
    "wrong flag": ('warm_start = "yes"', "warm_start: true or false is needed, got 'yes'"),
    "table for a number": ("hidden = {a = 1}", "hidden: a whole number is needed"),
    "list for a method": ('method = ["lpa"]', "method"),
    "number for a backbone": ("backbone = 3", "backbone: a name, a class or a module is needed, got 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONFIGS)
def test_configs(place: Path, case: str) -> None:
    text, message = CONFIGS[case]
    (place / "a.toml").write_text(text)
    check(place, (*FIT, "--config", "a.toml"), message)


def test_config_files(place: Path) -> None:
    check(place, (*FIT, "--config", "none.toml"), "none.toml: cannot be read: No such file or directory")
    check(place, (*FIT, "--config", "mine"), "mine: cannot be read: Is a directory")
    (place / "b.toml").write_bytes("method = 'ä'".encode("latin-1"))
    check(place, (*FIT, "--config", "b.toml"), "b.toml: is not UTF-8 text")


def test_places_for_a_model(place: Path) -> None:
    (place / "file").touch()
    (place / "photos").mkdir()
    (place / "photos" / "cat.jpg").touch()
    check(place, ("fit", "mine", "-o", "file"), "file: is a file, a folder is to be written there")
    check(place, ("fit", "mine", "-o", "photos"), "photos: is a folder with other content (no current)")
    check(place, ("fit", "mine", "-o", "no/where"), "no/where: there is no folder no; create it first")
    check(place, ("predict", "model", "-o", "no/p.csv"), "no/p.csv: there is no folder no; create it first")
    (place / "settings.toml").mkdir()
    check(place, ("tune", "mine", "-o", "settings.toml"), "settings.toml: is a folder, a file is to be written there")
    for nameless in (".", "", "/"):
        check(place, ("fit", "mine", "-o", nameless), "a model needs a folder of its own; give it a name")
    (place / "model" / "mine.txt").touch()
    check(place, ("fit", "mine", "-o", "model"), "'mine.txt' in it was not written by lignn; move it away first")
    (place / "new.checkpoint").touch()
    check(place, FIT, "new.checkpoint: an interrupted run; add --resume, or delete the file to start over")


def test_what_is_read_is_not_written_to(place: Path) -> None:
    (place / "l.csv").write_text("id,label\ng,red\n")
    read = "is an input, nothing is written there; choose another place"
    check(place, ("predict", "model", "--labels", "l.csv", "-o", "l.csv"), f"l.csv: l.csv {read}")
    check(place, ("predict", "model", "-o", "model/p.csv"), f"model/p.csv: model {read}")
    check(place, ("predict", "model", "--graph", "mine", "-o", "mine/p.csv"), f"mine/p.csv: mine {read}")
    check(place, ("predict", "model", "-o", "mine/nodes.csv"), "is the name of a graph's table")
    check(place, ("tune", "mine", "-o", "mine/best.toml"), f"mine/best.toml: mine {read}")
    check(place, ("tune", "mine", "-o", "mine/nodes.csv"), "mine/nodes.csv: the settings are a .toml file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('seed = "a"', "seed: a whole number is needed, got 'a'"),
        ("seed = 1.5", "seed: a whole number is needed, got 1.5"),
        ("backbone = 3", "backbone"),
        ('backbone = ["gcn"]', "backbone"),
    ],
)
def test_settings_of_a_comparison(place: Path, text: str, message: str) -> None:
    (place / "a.toml").write_text(text)
    check(place, (*COMPARE, "--config", "a.toml"), message)


def test_interrupted_runs(place: Path) -> None:
    (place / "new.checkpoint").write_bytes(b"damaged")
    (place / "new.checkpoint.toml").write_text("hidden = 8")
    check(place, ("fit", "mine", "-o", "new", "--resume"), "new.checkpoint: not a checkpoint, or a damaged one")
    again = ("fit", "mine", "-o", "new", "--resume", "--hidden", "16")
    check(place, again, "--resume: hidden was 8 and cannot become 16 in mid-run")
    (place / "new.checkpoint.toml").unlink()
    check(place, ("fit", "mine", "-o", "new", "--resume"), "new.checkpoint.toml: cannot be read: No such file")


def changed_config(change: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    def prepare(place: Path) -> None:
        file = saving.generations.current(place / "model") / "config.json"
        told = json.loads(file.read_text())
        change(told)
        file.write_text(json.dumps(told))

    return prepare


def cut(name: str, size: int) -> Callable[[Path], None]:
    def prepare(place: Path) -> None:
        file = saving.generations.current(place / "model") / name
        file.write_bytes(file.read_bytes()[:size])

    return prepare


def flip_a_weight(place: Path) -> None:
    file = saving.generations.current(place / "model") / "weights.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-3] ^= 1
    file.write_bytes(raw)


def remove(name: str) -> Callable[[Path], None]:
    return lambda place: (saving.generations.current(place / "model") / name).unlink()


MODELS: dict[str, tuple[Callable[[Path], None], tuple[str, ...], str]] = {
    "no model": (nothing, ("predict", "modell", "-o", "out.csv"), "modell"),
    "no model to diagnose": (nothing, ("diagnose", "modell"), "modell"),
    "folder of tables": (nothing, ("predict", "mine", "-o", "out.csv"), "mine"),
    "file": (nothing, ("predict", "mine/nodes.csv", "-o", "out.csv"), "mine/nodes.csv"),
    "cut config": (cut("config.json", 40), PREDICT, "model/generation-1/config.json"),
    "cut weights": (cut("weights.safetensors", 100), PREDICT, "model/generation-1/weights.safetensors"),
    "cut graph": (cut("graph.npz", 100), PREDICT, "model/generation-1/graph.npz"),
    "tampered weights": (flip_a_weight, PREDICT, "model/generation-1/weights.safetensors"),
    "no weights": (remove("weights.safetensors"), PREDICT, "model/generation-1/weights.safetensors"),
    "no graph": (remove("graph.npz"), PREDICT, "model/generation-1/graph.npz"),
    "newer format": (changed_config(lambda told: told.update(format=99)), PREDICT, "model"),
    "no format": (changed_config(lambda told: told.pop("format")), PREDICT, "model"),
}  # fmt: skip


@pytest.mark.parametrize("case", MODELS)
def test_models(place: Path, case: str) -> None:
    prepare, arguments, message = MODELS[case]
    prepare(place)
    check(place, arguments, message)


OTHER_GRAPHS: dict[str, tuple[str, str]] = {
    "more features": ("id,label,x0,x1,x2\na,red,0,0,0\nb,blue,0,0,0\n", "other: 'x2' is no feature of the model; "),
    "fewer features": ("id,label,x1\na,red,0\nb,blue,0\n", "other: 'x0', a feature of the model, is missing; "),
    "other features": (
        NODES.replace("x0", "X0"),
        "other: 'x0', a feature of the model, is missing, and 'X0' is no feature of the model; "
        "the columns must be those it was trained with, in any order",
    ),
    "other classes": (NODES.replace("red", "green"), "'green'"),
    "several labels": (NODES.replace("label", "labels"), "several classes"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHER_GRAPHS)
def test_models_of_other_graphs(place: Path, case: str) -> None:
    nodes, message = OTHER_GRAPHS[case]
    if case.endswith("features"):  # prepared ones need not be the same, see test_columns.py
        run("fit", "mine", "-o", "model", "--features", "raw", "--max-epochs", "2")
    write_tables(place / "other", nodes, "source,target\na,b\n")
    check(place, (*PREDICT, "--graph", "other"), message)


LABELS: dict[str, tuple[str, str]] = {
    "unknown node": ("id,label\nz,red\n", "new.csv, line 2, column 'id': 'z' is not the id of a node"),
    "unknown class": ("id,label\ng,green\n", "new.csv, line 2, column 'label': 'green' is not one of the classes"),
    "no label": ("id,class\ng,red\n", "new.csv: the column 'label' is missing"),
    "node twice": ("id,label\ng,red\ng,blue\n", "new.csv, line 3, column 'id': the id 'g' is already used in line 2"),
    "empty": ("", "new.csv: is empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", LABELS)
def test_new_labels(place: Path, case: str) -> None:
    text, message = LABELS[case]
    (place / "new.csv").write_text(text)
    check(place, (*PREDICT, "--labels", "new.csv"), message)


def test_new_labels_belong_to_the_models_graph(place: Path) -> None:
    (place / "new.csv").write_text("id,label\ng,red\n")
    check(place, (*PREDICT, "--graph", "mine", "--labels", "new.csv"), "--labels: new labels are for the graph of the")
    check(place, (*PREDICT, "--labels", "none.csv"), "none.csv: cannot be read: No such file or directory")


def test_too_few_labels_to_compare(place: Path) -> None:
    write_tables(place / "mine", "id,label,x\na,red,1\nb,blue,0\nc,,1\n", "source,target\na,b\nb,c\n")
    check(place, ("compare", "mine", "--jobs", "1"), "mine: 2 labelled nodes are too few to train, choose and test on")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errno.ENOSPC, 1, "could not be written: No space left on device"),
        (errno.EACCES, 2, "cannot be written there: Perm"),
    ],
)
@pytest.mark.parametrize("arguments", [FIT, PREDICT, COMPARE])
def test_disks(
    place: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], error: int, code: int, message: str
) -> None:
    """A full disk and a place without permission, simulated: root may write everywhere."""

    def fails(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    before = content(place)
    monkeypatch.setattr(os, "fsync", fails)
    result = outcome(*arguments)
    assert result.code == code
    assert message in result.err.splitlines()[-1]
    assert "Traceback" not in result.err
    assert content(place) == before


def test_a_disk_that_is_full_when_the_model_is_saved(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was trained is not lost: the run can go on, which only saves it."""

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(saving, "save", fails)
        result = outcome(*FIT)
    assert result.code == 1
    assert "new: could not be written: No space left on device" in result.err
    assert {path.name for path in place.glob("*new*")} == {"new.checkpoint", "new.checkpoint.toml"}
    assert outcome("fit", "mine", "-o", "new", "--resume").code == 0
    assert {path.name for path in place.glob("*new*")} == {"new"}


def test_there_are_enough_of_them() -> None:
    cases = (TABLES, GRAPHS, OPTIONS, CONFIGS, MODELS, OTHER_GRAPHS, LABELS)
    assert sum(map(len, cases)) >= 60


FINE = {
    "byte-order mark": "\ufeff" + NODES,
    "Windows line ends": NODES.replace("\n", "\r\n"),
    "quotes": NODES.replace("a,red", '"a","red"'),
    "blank lines": NODES.replace("\n", "\n\n"),
    "spaces": NODES.replace("a,red", " a ,red\u00a0"),
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_not_wrong(place: Path, case: str) -> None:
    write_tables(place / "same", FINE[case])
    outcomes = [outcome("predict", "model", "--graph", graph) for graph in ("mine", "same")]
    assert outcomes[0].code == 0
    assert outcomes[0].out == outcomes[1].out


def test_one_node_is_too_few_for_batch_normalisation(place: Path) -> None:
    write_tables(place / "mine", "id,labels,x\na,p|q,1\n", "source,target\na,a\n")
    check(
        place,
        (*FIT, "--backbone", "mlp", "--preset", "paper"),
        "batch normalisation needs at least two nodes; give the backbone option",
    )
    assert outcome(*FIT, "--backbone", "mlp", "--backbone-options", "batch_norm=false").code == 0
