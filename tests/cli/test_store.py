"""`lignn store`, and commands on a store."""

import json

import numpy as np
import pytest
import typer

from lignn.cli import workers
from lignn.errors import ConfigError, ProcessError
from tests.cli.commands import outcome, run
from tests.problems import random_graph

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
FAST = ("--max-epochs", 2, "--hidden", 4, "--precision", "float64")


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.npz"
    random_graph(40).write(path)
    return path


def test_build_inspect_fit_predict_and_diagnose(tmp_path, graph):
    store, model = tmp_path / "store", tmp_path / "model"
    told = json.loads(run("store", "build", graph, store, "--parts", 4, "--json"))
    assert (told["nodes"], told["parts"], told["partition"], told["undirected"]) == (40, 4, "metis", True)
    assert 0 < told["cut"] < 1
    assert "partition" in run("store", "info", store, "--check")
    result = outcome("fit", store, "-o", model, "--memory", "2GB", *FAST)
    assert result.code == 0, result.err
    assert result.err.startswith("memory ")
    assert "streamed by each product: edges" in result.err
    assert "s an epoch" in result.err
    run("fit", graph, "-o", tmp_path / "plain", *FAST)
    for name in ("model", "plain"):
        run("predict", tmp_path / name, "-o", tmp_path / f"{name}.csv")
    tables = [(tmp_path / f"{name}.csv").read_text().splitlines() for name in ("model", "plain")]
    columns = [[line.split(",") for line in table] for table in tables]
    assert [row[:2] for row in columns[0]] == [row[:2] for row in columns[1]]
    numbers = [np.array([row[5:] for row in table[1:]], float) for table in columns]
    assert np.allclose(*numbers, rtol=0, atol=1e-8)
    assert "The equilibrium is unique" in run("diagnose", model)


def test_batches_of_parts_are_planned_and_saved(tmp_path, graph):
    store, model = tmp_path / "store", tmp_path / "model"
    run("store", "build", graph, store, "--parts", 5)
    result = outcome("fit", store, "-o", model, "--batch-parts", 2, *FAST)
    assert result.code == 0, result.err
    assert "updates of an epoch: 3, each on a batch of parts" in result.err
    assert "history " in result.err
    assert "batch_parts = 2" in next(model.rglob("settings.toml")).read_text()
    assert "The equilibrium is unique" in run("diagnose", model)
    told = outcome("fit", store, "-o", tmp_path / "other", "--batch-parts", 2, "--workers", 2, *FAST)
    assert told.code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "{graph}", "-o", "{out}", "--memory", "2GB"], "--memory: "),
        (["fit", "{graph}", "-o", "{out}", "--memory", "lots"], "--memory: "),
        (["fit", "{store}", "-o", "{out}", "--memory", "lots"], "'lots' is no size"),
        (["fit", "{store}", "-o", "{out}", "--memory", "1MB"], "are needed, 1 MB are allowed"),
        (["fit", "{store}", "-o", "{out}", "--undirected"], "--undirected: {store} is a store"),
        (["fit", "{store}", "-o", "{out}", "--method", "lpa"], "lpa needs the graph in memory"),
        (["fit", "{graph}", "-o", "{out}", "--batch-parts", "1"], "only a store has parts"),
        (["fit", "{graph}", "-o", "{out}", "--batch-parts", "1", "--method", "auto"], "--batch-parts: is for a store"),
        (["fit", "{store}", "-o", "{out}", "--batch-parts", "3"], "2 parts, 3 are wanted in a batch"),
        (["fit", "{store}", "-o", "{out}", "--batch-parts", "1", "--method", "label_reuse"], "fixed number of passes"),
        (["store", "build", "{graph}", "{out}", "--parts", "2", "--partition", "metal"], "did you mean 'metis'?"),
        (["store", "build", "{graph}", "{out}", "--parts", "2", "--column", "id"], "not of the form ROLE=NAME"),
        (["store", "info", "{out}"], "no store here"),
        (["compare", "{store}"], "{store}: is a store, which lignn fit"),
        (["tune", "{store}", "-o", "{out}.toml"], "{store}: is a store, which lignn fit"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, graph, arguments, message):
    store, out = tmp_path / "store", tmp_path / "out"
    run("store", "build", graph, store, "--parts", 2, "--partition", "blocks")
    result = outcome(*(argument.format(graph=graph, store=store, out=out) for argument in arguments))
    assert result.code == 2
    assert message.format(store=store) in result.err
    assert result.err.count("\n") == 1
    assert not out.exists()


def test_two_workers_as_one(tmp_path, graph):
    store = tmp_path / "store"
    run("store", "build", graph, store, "--parts", 2, "--partition", "blocks")
    for name, count in (("one", 1), ("two", 2)):
        result = outcome("fit", store, "-o", tmp_path / name, "--workers", count, *FAST)
        assert result.code == 0, result.err
    found = [json.loads(run("predict", tmp_path / name, "--json"))["predictions"] for name in ("one", "two")]
    numbers = [np.array([list(row.values())[5:] for row in rows], float) for rows in found]
    assert np.allclose(*numbers, rtol=0, atol=1e-8)


def test_a_worker_that_was_killed_ends_the_command_with_a_sentence(monkeypatch):
    monkeypatch.setattr(workers, "command", ["fit", "store", "-o", "m", "--workers", "2"])
    with pytest.raises(ProcessError) as told:
        workers._end((1, -9), 2)
    assert "process 2 of 2 was ended by SIGKILL (perhaps there was not enough memory)" in str(told.value)
    assert str(told.value).endswith("go on with: lignn fit store -o m --workers 2 --resume")
    with pytest.raises(typer.Exit) as end:
        workers._end((1, 2), 2)  # the worker has told why
    assert end.value.exit_code == 2


def test_several_processes_need_a_store(graph, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    from lignn.cli.workers import refuse_several

    with pytest.raises(ValueError, match="is not a store; make one by"):
        refuse_several(2, str(graph))


def test_sizes_in_words():
    from lignn.classifier.planning import parse_bytes, size

    assert [parse_bytes(text) for text in ("2GB", "500 MB", "1.5g", "7")] == [2 * 10**9, 5 * 10**8, 15 * 10**8, 7]
    assert [size(count) for count in (2 * 10**9, 1500, 3)] == ["2 GB", "1.5 KB", "3 B"]
    with pytest.raises(ConfigError, match="no size"):
        parse_bytes("GB")
