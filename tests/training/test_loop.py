"""The training loop: early stopping, best weights, resuming to the bit, breaking down with grace."""

import json
import math
from contextlib import suppress
from dataclasses import replace

import pytest
import torch

from lignn.backbones import GCN
from lignn.equilibrium.solvers import Picard
from lignn.errors import ConfigError, InputError
from lignn.methods import LIGNN, Network, Problem
from lignn.training import (
    Checkpoints,
    End,
    Interrupted,
    Training,
    Watch,
    checkpoint,
    f1_micro,
    loop,
    score_on,
    scorer,
    train,
)
from tests.methods.small import gcn
from tests.problems import half_split, random_graph

SOLVER = Picard(tol=1e-8, max_steps=100)


def setting(seed=0, multilabel=False, warm=True, dropout=0.3):
    graph = random_graph(n=40, seed=seed, multilabel=multilabel)
    split = half_split(40, seed)
    method = LIGNN(gcn(graph, dropout=dropout), "adaptive", False, SOLVER, warm_start=warm)
    return method, Problem.of(graph, split.train, torch.float64), scorer(graph, split)


def run(settings=None, path=None, progress=None, *, run_id="", seconds=10.0, scored=True, prepare=None, **options):
    method, problem, score = setting(**options)
    if prepare is not None:
        prepare(method)
    score = score if scored else None
    generator = torch.Generator().manual_seed(5)
    hooks = [] if path is None else [Checkpoints(path, run_id, seconds)]
    hooks += [] if progress is None else [Watch(progress)]
    return method, train(method, problem, problem, score, generator, settings, hooks=hooks)


def without_time(history):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in history.epochs]


def test_keeps_the_weights_of_the_best_epoch():
    weights = []
    method, history = run(
        Training(max_epochs=30), progress=lambda h: weights.append((len(h.epochs), h.best)), warm=False, dropout=0.0
    )
    assert history.end is End.EPOCHS
    assert len(history.epochs) == 30
    best = max(range(30), key=lambda i: (history.epochs[i]["val"], -i))
    assert history.best == best
    _, problem, score = setting(warm=False, dropout=0.0)
    assert score(method.predict(problem))["val"] == history.best_record["val"]
    assert weights[-1] == (30, best)


def test_stops_after_the_patience():
    _, history = run(Training(max_epochs=500, patience=7))
    assert history.end is End.PATIENCE
    assert len(history.epochs) - 1 - history.best == 7


def test_only_epochs_from_the_first_on_may_be_chosen():
    free = run(Training(max_epochs=40))[1]
    first = free.best + 3
    _, history = run(Training(max_epochs=40, first_epoch=first))
    assert without_time(history) == without_time(free)
    assert history.best == max(range(first, 40), key=lambda i: (history.epochs[i]["val"], -i))
    _, stopped = run(Training(max_epochs=500, patience=7, first_epoch=20))
    assert stopped.best >= 20
    assert len(stopped.epochs) - 1 - stopped.best == 7


def test_same_seed_same_result():
    (first, a), (second, b) = (run(Training(max_epochs=10)) for _ in range(2))
    assert without_time(a) == without_time(b)
    assert all(torch.equal(v, second.state_dict()[k]) for k, v in first.state_dict().items())


@pytest.mark.parametrize("killed_after", [1, 4, 9])
def test_a_killed_run_resumes_to_the_same_end(tmp_path, killed_after):
    resumes_to_the_same_end(Training(max_epochs=12), tmp_path, killed_after)


def resumes_to_the_same_end(settings, tmp_path, killed_after):
    whole, history = run(settings)

    class KilledError(Exception):
        pass

    def kill(h):
        if len(h.epochs) > killed_after:
            raise KilledError

    path = tmp_path / "run.safetensors"
    with pytest.raises(KilledError):
        run(settings, path, kill, seconds=0)
    assert path.exists()
    resumed, again = run(settings, path)
    assert without_time(again) == without_time(history)
    assert again.best == history.best
    assert all(torch.equal(v, resumed.state_dict()[k]) for k, v in whole.state_dict().items())
    finished, third = run(settings, path)
    assert without_time(third) == without_time(history)
    assert all(torch.equal(v, finished.state_dict()[k]) for k, v in whole.state_dict().items())


def interrupted_in(part, number):
    """Prepare a method to be interrupted in the middle of this call of `part`."""

    def prepare(method):
        calls, whole = [], getattr(method, part)

        def interrupted(*given):
            calls.append(1)
            result = whole(*given)
            if len(calls) == number:
                raise KeyboardInterrupt
            return result

        setattr(method, part, interrupted)

    return prepare


@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize("part", ["epoch", "evaluate"])
def test_an_interrupted_run_resumes_to_the_same_end(tmp_path, part, scored):
    """Wherever in an epoch the interruption falls."""
    path, settings = tmp_path / "run.safetensors", Training(max_epochs=12)
    with pytest.raises(Interrupted) as interruption:
        run(settings, path, prepare=interrupted_in(part, 4), scored=scored)
    assert len(interruption.value.history.epochs) == 3
    method, history = run(settings, path, scored=scored)
    whole, expected = run(settings, scored=scored)
    assert without_time(history) == without_time(expected)
    assert history.best == expected.best
    assert all(torch.equal(v, method.state_dict()[k]) for k, v in whole.state_dict().items())


def test_an_interrupted_run_leaves_what_a_shorter_one_would():
    method, problem, score = setting()
    interrupted_in("epoch", 7)(method)
    with pytest.raises(Interrupted) as interruption:
        train(method, problem, problem, score, torch.Generator().manual_seed(5))
    history = interruption.value.history
    assert history.end is End.INTERRUPTED
    shorter, expected = run(Training(max_epochs=6))
    assert without_time(history) == without_time(expected)
    assert history.final == expected.final
    assert all(torch.equal(v, method.state_dict()[k]) for k, v in shorter.state_dict().items())
    assert not method.training


@pytest.mark.parametrize("window", ["checkpoint", "prediction"])
def test_an_interruption_after_the_last_epoch_keeps_its_result(tmp_path, monkeypatch, window):
    """While the last checkpoint is written, or while the trained weights predict."""
    settings, path, calls = Training(max_epochs=4), tmp_path / "run.safetensors", []
    expected = run(settings)[1]
    place = (checkpoint, "write") if window == "checkpoint" else (loop, "_predict")
    whole = getattr(*place)

    def interrupted(*given):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return whole(*given)

    monkeypatch.setattr(*place, interrupted)
    with pytest.raises(Interrupted) as interruption:
        run(settings, path)
    history = interruption.value.history
    assert (history.end, history.final) == (End.INTERRUPTED, expected.final)
    assert without_time(history) == without_time(expected)
    assert run(settings, path)[1].end is End.EPOCHS


def test_a_second_interruption_ends_the_prediction_too(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_predict", interrupted)
    with pytest.raises(KeyboardInterrupt) as interruption:
        run(prepare=interrupted_in("epoch", 3))
    assert interruption.type is KeyboardInterrupt


def test_an_interruption_in_the_first_epoch_leaves_nothing_to_keep(tmp_path):
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt) as interruption:
        run(path=path, prepare=interrupted_in("epoch", 1))
    assert interruption.type is KeyboardInterrupt
    assert without_time(run(Training(max_epochs=4), path)[1]) == without_time(run(Training(max_epochs=4))[1])


def test_without_a_score_the_last_epoch_is_kept():
    method, history = run(Training(max_epochs=5, patience=2), scored=False)
    assert history.best == 4
    assert history.final == {}
    assert all("val" not in record for record in history.epochs)
    expected = []
    run(
        Training(max_epochs=5),
        prepare=lambda other: expected.append(other),
        progress=lambda _: expected.append({name: value.clone() for name, value in expected[0].state_dict().items()}),
    )
    assert all(torch.equal(v, method.state_dict()[k]) for k, v in expected[-1].items())


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    run(Training(max_epochs=2), path, run_id="one")
    before = path.read_bytes()
    with pytest.raises(InputError, match="checkpoint of another run"):
        run(Training(max_epochs=2), path, run_id="another")
    _, problem, score = setting()
    wider = Network(GCN(problem.x.shape[1], problem.labels.num_classes, hidden=65).double())
    with pytest.raises(InputError, match="checkpoint of another run"):
        train(wider, problem, problem, score, torch.Generator(), hooks=[Checkpoints(path, "one")])
    assert path.read_bytes() == before


def test_damaged_checkpoint_is_one_sentence(tmp_path):
    path = tmp_path / "run.safetensors"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="delete it to start over"):
        run(Training(max_epochs=2), path)


def test_no_changed_bit_of_a_checkpoint_goes_unnoticed(tmp_path):
    path = tmp_path / "run.safetensors"
    run(Training(max_epochs=2), path)
    content = path.read_bytes()
    header = int.from_bytes(content[:8], "little")
    generator = torch.Generator().manual_seed(0)
    unnoticed: list[int] = []
    places = torch.randint(8 * len(content), (150,), generator=generator).tolist()
    for bit in [*places, *range(64, 64 + 8 * header, 61)]:
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with suppress(InputError):
            checkpoint.read(path)
            unnoticed.append(bit)
    assert unnoticed == []


def test_a_checkpoint_of_every_kind_of_tensor(tmp_path):
    kinds = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool)
    state = {f"{kind} {shape}": torch.ones(shape, dtype=kind) for kind in kinds for shape in ((), (0, 3), (2, 3))}
    checkpoint.write(tmp_path / "run", state | {"plain": 1})
    read = checkpoint.read(tmp_path / "run")
    assert read.pop("plain") == 1
    assert all(torch.equal(tensor, read[name]) for name, tensor in state.items())


def test_records_are_plain_and_tell_of_every_solve():
    _, history = run(Training(max_epochs=3))
    for number, record in enumerate(json.loads(json.dumps(history.epochs))):
        assert record["epoch"] == number
        for solve in ("forward", "backward", "evaluation"):
            assert set(record[solve]) == {"status", "steps", "residual", "contraction"}
        assert {"loss", "train", "val", "test", "mask_rate", "seconds"} <= set(record)


def test_non_finite_loss_ends_with_the_best_weights():
    method, problem, score = setting(warm=False, dropout=0.0)
    start = {k: v.clone() for k, v in method.state_dict().items()}
    epoch = method.epoch

    def broken(*given):
        found = epoch(*given)
        return replace(found, loss=found.loss * (float("nan") if len(seen) == 2 else 1))

    method.epoch = broken
    seen = []
    watch = Watch(seen.append)
    history = train(method, problem, problem, score, torch.Generator().manual_seed(5), hooks=[watch])
    assert history.end is End.NON_FINITE
    assert len(history.epochs) == 2
    assert all(v.isfinite().all() for v in method.state_dict().values())
    assert any(not torch.equal(v, start[k]) for k, v in method.state_dict().items())


def test_learns_what_can_be_learnt():
    """Labels that are a function of the features: a GCN without graph fits them."""
    graph = random_graph(n=60, num_features=3, seed=1)
    graph = graph.replace(y=graph.x.argmax(1), edge_index=torch.empty(2, 0, dtype=torch.int64))
    split = half_split(60, 1)
    generator = torch.Generator().manual_seed(0)
    backbone = GCN(3, 3, hidden=32, generator=generator).double()
    problem = Problem.of(graph, split.train, torch.float64)
    settings = Training(max_epochs=300, patience=300)
    history = train(Network(backbone), problem, problem, scorer(graph, split), generator, settings)
    assert history.best_record["val"] > 0.85


def test_multilabel_training_runs_on_f1_micro():
    _, history = run(Training(max_epochs=5), multilabel=True)
    assert all(0 <= record["val"] <= 1 for record in history.epochs)


def test_f1_micro():
    assert f1_micro(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 0])) == 0.75
    predicted = torch.tensor([[1, 0], [1, 1]], dtype=torch.int8)
    truth = torch.tensor([[1, 1], [0, 1]], dtype=torch.int8)
    assert f1_micro(predicted, truth) == pytest.approx(2 * 2 / (3 + 3))
    assert f1_micro(torch.zeros(2, 2, dtype=torch.int8), torch.zeros(2, 2, dtype=torch.int8)) == 1


def test_scores_need_labels():
    graph = random_graph()
    with pytest.raises(InputError, match="no labels to score"):
        score_on(graph.replace(y=None), {})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lr": 0}, "^lr: a positive number is needed, got 0$"),
        ({"lr": math.nan}, "^lr: a positive number is needed, got nan$"),
        ({"weight_decay": -1.0}, "^weight_decay: a number of at least 0 is needed, got -1.0$"),
        ({"teaching": -1.0}, "^teaching: a number of at least 0 is needed, got -1.0$"),
        ({"max_epochs": 0}, "^max_epochs: at least 1 is needed, got 0$"),
        ({"patience": 0}, "^patience: at least 1 is needed, got 0$"),
        ({"first_epoch": 1000}, "^first_epoch: 0 … 999 is needed, got 1000$"),
    ],
)
def test_impossible_settings(wrong, message):
    with pytest.raises(ConfigError, match=message):
        Training(**wrong)
