import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import lignn
from lignn.classifier import saving
from lignn.cli import progress
from lignn.training import History
from tests.cli.commands import outcome, run
from tests.cli.conftest import EDGES, NODES, write_tables

TINY = ("--max-epochs", "6", "--hidden", "4")


def test_a_model_and_its_settings(place: Path) -> None:
    out = run("fit", "mine", "-o", "new", *TINY, "--mask-rate", "adaptive", "--backbone-options", "num_layers=1")
    assert "Model: new (settings: new/generation-1/settings.toml)" in out
    classifier = lignn.load("new")
    assert (classifier.hidden, classifier.mask_rate, classifier.n_iter_) == (4, "adaptive", 6)
    assert classifier.graph_.node_ids.tolist() == list("abcdefghijkl")
    assert {path.name for path in place.iterdir()} == {"mine", "model", "new"}


def test_a_method_without_training_tells_of_no_epochs(place: Path) -> None:
    assert "\nthe method has nothing to train\n" in run("fit", "mine", "-o", "new", "--method", "lpa")
    assert json.loads(run("fit", "mine", "-o", "new", "--method", "lpa", "--json"))["best_epoch"] is None


def test_the_held_out_score_comes_last_and_training_scores_on_request(place: Path) -> None:
    """No node is left that the model has not trained on; the score is that of before."""
    last = "These labels were held back for this score; the final model has since been trained on them too."
    told = run("fit", "mine", "-o", "new", *TINY, "--refit")
    assert told.splitlines()[-1] == last
    assert " held-out labels; always " in told
    assert "training" not in told
    more = run("fit", "mine", "-o", "new", *TINY, "--refit", "--training-scores")
    assert more.splitlines()[-1] == last
    assert "The model was trained on these labels: the score says nothing of other nodes." in more
    reports = json.loads(run("fit", "mine", "-o", "new", *TINY, "--refit", "--training-scores", "--json"))["reports"]
    assert list(reports) == ["held_out", "train"]
    assert reports["held_out"]["seen_since"]


def test_it_is_told_when_a_model_has_taught_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FIRST": 2, "EVERY": 2}.items():
        monkeypatch.setattr(f"lignn.training.hooks.teaching.{name}", value)
    # it teaches two nodes without a label, and two that are held back
    policy = ["--policy", "learned=10.0", "--policy", "sure=0"]
    told = run("fit", "mine", "-o", "new", *TINY, *policy, "--report", "new.html")
    line = "From epoch 3 on it also learned from predictions that it is sure of, 4 at the end (teaching)."
    assert line in told
    assert line in Path("new.html").read_text(encoding="utf-8")
    assert "it also learned" not in run("fit", "mine", "-o", "new", *TINY, "--teaching", 0)


def test_settings_can_be_used_again(place: Path) -> None:
    run("fit", "mine", "-o", "one", *TINY, "--preset", "paper", "--seed", 3)
    run("fit", "mine", "-o", "two", "--config", "one")
    one, two = (saving.settings_file(name).read_text().splitlines() for name in ("one", "two"))
    assert one[1:] == two[1:]
    run("fit", "mine", "-o", "two", "--config", saving.settings_file("one"))
    assert run("predict", "one") == run("predict", "two")


@pytest.mark.parametrize("method", ["eignn", "ignn", "lpa", "threeference", "correct_and_smooth"])
def test_settings_of_every_kind_of_network_can_be_used_again(place: Path, method: str) -> None:
    run("fit", "mine", "-o", "one", "--max-epochs", 1, "--method", method)
    run("fit", "mine", "-o", "two", "--config", "one")
    assert run("predict", "one") == run("predict", "two")


def test_json_and_nothing_else(place: Path) -> None:
    result = outcome("fit", "mine", "-o", "new", *TINY, "--json")
    record = json.loads(result.out)
    assert result.err == ""
    assert (record["model"], record["settings"], record["epochs"]) == ("new", "new/generation-1/settings.toml", 6)
    assert set(record["scores"]) == {"val"}
    assert record["parameters"]["hidden"] == 4


def test_a_model_of_0_1_gets_generations_and_its_settings_stay_beside_it(place: Path) -> None:
    old = Path(__file__).parent.parent / "classifier" / "models" / "0.1.0" / "default"
    shutil.copytree(old, "old")
    Path("old.toml").write_text("# settings of old, for lignn fit --config\nhidden = 16\n")
    before = lignn.load("old").predict_proba()
    assert "old.toml" not in outcome("predict", "old").err
    result = outcome("fit", "mine", "-o", "old", *TINY)
    assert result.err.endswith(
        "note: old.toml has the settings of an earlier model; those of this one: old/generation-1/settings.toml\n"
    )
    assert {path.name for path in Path("old").iterdir()} == {"current", "generation-1"}
    assert lignn.load("old").predict_proba().shape != before.shape
    run("fit", "mine", "-o", "same", "--config", "old.toml", "--max-epochs", 1)


def test_a_log_gets_plain_lines(place: Path) -> None:
    assert outcome("fit", "mine", "-o", "new", *TINY).err.startswith("epoch 1/6  loss ")


def test_the_tables_own_split_is_used_and_its_test_part_scored(place: Path) -> None:
    parts = ["train"] * 6 + ["val"] * 2 + ["test"] * 2
    rows = [f"n{i},{'rb'[i % 2]},{part},{i}" for i, part in enumerate(parts)]
    nodes = "\n".join(["id,label,split,x", *rows]) + "\n"
    write_tables(place / "own", nodes, "source,target\n" + "\n".join(f"n{i},n{i + 1}" for i in range(9)) + "\n")
    record = json.loads(run("fit", "own", "-o", "new", *TINY, "--json"))
    assert set(record["scores"]) == {"val", "test"}
    assert lignn.load("new").split_.test.tolist() == [False] * 8 + [True] * 2


def test_a_split_without_validation_keeps_its_test_part(place: Path) -> None:
    """Test labels that are flipped change no prediction."""
    parts = ["train"] * 8 + ["test"] * 4
    found = []
    for name, flipped in (("one", ""), ("two", "test")):
        words = ["rb"[(i % 2) ^ (part == flipped)] for i, part in enumerate(parts)]
        rows = [f"n{i},{word},{part},{i}" for i, (word, part) in enumerate(zip(words, parts, strict=True))]
        edges = "\n".join(f"n{i},n{i + 1}" for i in range(11))
        write_tables(place / name, "\n".join(["id,label,split,x", *rows]) + "\n", f"source,target\n{edges}\n")
        record = json.loads(run("fit", name, "-o", f"{name}_model", *TINY, "--json"))
        assert set(record["scores"]) == {"val", "test"}
        model = lignn.load(f"{name}_model")
        assert model.split_.test.tolist() == [False] * 8 + [True] * 4
        assert model.decision().known.tolist() == [True] * 8 + [False] * 4
        found.append(model.predict_proba())
    assert np.array_equal(*found)


def test_undirected_joins_the_reverse_edges(place: Path) -> None:
    edges = len(EDGES.splitlines()) - 1
    run("fit", "mine", "-o", "new", *TINY, "--undirected")
    assert lignn.load("model").graph_.num_edges == edges
    assert lignn.load("new").graph_.num_edges == 2 * edges


@contextmanager
def ctrl_c_after(epochs: int) -> Iterator[Callable[[History], None]]:
    def tell(history: History) -> None:
        if len(history.epochs) == epochs:
            raise KeyboardInterrupt

    yield tell


def test_ctrl_c_leaves_the_best_model_and_resume_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("fit", "mine", "-o", "whole", *TINY)
    with monkeypatch.context() as interrupting:
        interrupting.setattr(progress, "of_training", lambda *_, **__: ctrl_c_after(4))
        result = outcome("fit", "mine", "-o", "new", *TINY)
    assert result.code == 130
    assert result.out == ""
    assert result.err.startswith("interrupted after 4 epochs; the best model so far (epoch ")
    assert result.err.endswith(") is new; go on with: lignn fit mine -o new --resume\n")
    assert len(lignn.load("new").history_.epochs) == 4
    assert "error: new.checkpoint: an interrupted run; add --resume" in outcome("fit", "mine", "-o", "new").err
    run("fit", "mine", "-o", "new", "--resume")
    assert run("predict", "new") == run("predict", "whole")
    assert not list(place.glob("*.checkpoint*"))


def test_a_second_run_of_the_same_model_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("fit", "mine", "-o", "whole", *TINY)
    seconds = []

    @contextmanager
    def second_run_then_ctrl_c(*_: object, **__: object) -> Iterator[Callable[[History], None]]:
        with monkeypatch.context() as usual:
            usual.setattr(progress, "of_training", of_training)
            seconds.extend([outcome("fit", "mine", "-o", "new"), outcome("fit", "mine", "-o", "./new", "--resume")])
        with ctrl_c_after(4) as tell:
            yield tell

    of_training = progress.of_training
    with monkeypatch.context() as interrupting:
        interrupting.setattr(progress, "of_training", second_run_then_ctrl_c)
        assert outcome("fit", "mine", "-o", "new", *TINY).code == 130
    words = "another lignn fit is making this model; wait until it is done, or choose another name"
    assert [(second.code, second.err) for second in seconds] == [(2, f"error: new: {words}\n")] * 2
    run("fit", "mine", "-o", "new", "--resume")
    assert run("predict", "new") == run("predict", "whole")
    assert {path.name for path in place.iterdir()} == {"mine", "model", "whole", "new"}


def test_an_interrupted_run_goes_on_with_its_own_graph_only(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "mine").rename("my graph")
    with monkeypatch.context() as interrupting:
        interrupting.setattr(progress, "of_training", lambda *_, **__: ctrl_c_after(4))
        result = outcome("fit", "my graph", "--undirected", "-o", "new", *TINY)
    assert result.err.endswith("; go on with: lignn fit 'my graph' --undirected -o new --resume\n")
    assert "hidden = 4\n" in saving.settings_file("new").read_text()  # of the model that was left
    before = (place / "new.checkpoint").read_bytes()
    other = outcome("fit", "my graph", "-o", "new", "--resume")
    assert other.code == 2
    assert other.err.startswith("error: --resume: my graph is not the graph of the interrupted run")
    assert (place / "new.checkpoint").read_bytes() == before
    run("fit", "my graph", "--undirected", "-o", "new", "--resume")


def test_ctrl_c_before_the_first_epoch_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lignn.NodeClassifier, "fit", interrupted)
    result = outcome("fit", "mine", "-o", "new", "--method", "lignn")
    assert result.code == 130
    assert result.err == "interrupted before the first epoch was done; no model was written\n"
    assert not list(place.glob("new*"))


def test_ctrl_c_once_more_before_an_epoch_says_how_to_go_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, checkpoint: Path, **__: object) -> None:
        checkpoint.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(lignn.NodeClassifier, "fit", interrupted)
    result = outcome("fit", "mine", "-o", "new", "--method", "lignn")
    assert result.err == "interrupted once more; go on with: lignn fit mine -o new --resume\n"
    assert (place / "new.checkpoint").exists()


def test_features_that_are_far_too_large(place: Path) -> None:
    (place / "mine" / "nodes.csv").write_text(NODES.replace("0.5,1", "3e38,-3e38"))
    result = outcome("fit", "mine", "-o", "new", "--max-epochs", "2", "--features", "raw")
    assert result.code == 2
    assert "features reach 3e+38" in result.err
    assert result.err.endswith("the loss is not finite; lower lr, or scale the features\n")
    assert not list(place.glob("new*"))


def test_a_real_ctrl_c(place: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "lignn",
        "fit",
        "mine",
        "-o",
        "new",
        "--max-epochs",
        "100000",
        "--patience",
        "99999",
    ]
    # What a shell starts in the background ignores Ctrl-C, and so would the command if these tests run there.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stderr is not None
        assert [process.stderr.readline().split(":")[0] for _ in range(2)] == ["nodes.csv", "edges.csv"]
        assert process.stderr.readline().startswith("epoch 1/100000")
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert "go on with: lignn fit mine -o new --resume" in rest
    assert "Traceback" not in rest
    assert lignn.load(place / "new").n_iter_ >= 1


def test_types_of_edges_and_their_directions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lignn.datasets.load("typed", num_nodes=40).write("typed.npz")
    run("fit", "./typed.npz", "-o", "model", *TINY, "--backbone", "rgcn", "--both-directions")
    classifier = lignn.load("model")
    assert classifier.both_directions is True
    assert len(classifier.method_.step.backbone.convs[0].weight) == 8
    assert lignn.load("model").graph_.edge_types == ("shift-0", "shift-1", "shift-2", "shift-3")
    assert "spectral radius" in run("diagnose", "model").lower()
    weights = "type_weights={'shift-0' = 100}"
    run("fit", "./typed.npz", "-o", "lpa", "--method", "lpa", "--method-options", weights)
    assert lignn.load("lpa").method_options == {"type_weights": {"shift-0": 100}}
    wrong = outcome("fit", "./typed.npz", "-o", "no", "--method", "lpa", "--method-options", "type_weights={shift=2}")
    assert wrong.code == 2
    assert "'shift' is no type of the edges of typed; did you mean 'shift-" in wrong.err
    assert not (tmp_path / "no").exists()


def test_edges_that_are_followed_one_way_are_told(place: Path) -> None:
    """All labels are at the end of a chain, so that they reach no other node."""
    nodes = "id,label,x\n" + "".join(f"{i},{'rb'[i % 2] if i > 9 else ''},{i % 2}\n" for i in range(20))
    edges = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(19))
    write_tables(place / "chain", nodes, edges)
    words = "10 of 20 nodes are reached by no known label, since edges are followed one way; with --undirected, all"
    assert words in run("fit", "chain", "-o", "new", *TINY)
    record = json.loads(run("fit", "chain", "-o", "new", *TINY, "--json"))
    assert record["one_way"] == {"without": 10, "without_if_undirected": 0, "nodes": 20}
    assert "one way" not in run("fit", "chain", "-o", "new", *TINY, "--undirected")
