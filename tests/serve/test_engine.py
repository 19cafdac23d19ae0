"""One solver, bursts, whole states, replay."""

import shutil
import threading

import numpy as np
import pytest
import torch

import lignn
from lignn.datasets.sources import Source
from lignn.errors import ConflictError, InputError, JournalError
from lignn.propagation.fused import FusedStep
from lignn.serve import engine as engines
from lignn.serve.engine import Engine, OverloadedError, Request, StartingError
from lignn.serve.journal import Change
from lignn.serve.opening import Place
from lignn.serve.training import training_data
from tests.classifier.small import fitted, small_graph, small_split

UNKNOWN = [f"node{i}" for i in small_split().test.nonzero().flatten().tolist()]


def opened(folder):
    engine = Engine(Place.of(str(folder), Source(str(folder)), None, None))
    engine.start()
    engine.opened.wait(60)
    assert engine.failure is None, engine.failure
    return engine


@pytest.fixture
def engine(model):
    engine = opened(model)
    yield engine
    engine.close()


def label(node, name="a"):
    return Request([Change("label", node, name)], "Ada")


def paused(engine):
    """Keep the solver busy until the event is set."""
    event = threading.Event()
    engine.call(event.wait)
    return event


def test_a_burst_is_one_solve_and_one_state(engine, original):
    """100 labels that wait together, one of each node and a second one of some, and a request that does not fit."""
    y = small_graph().y.tolist()
    wanted = [(f"node{i % 90}", "abc"[(y[i % 90] + 1 + i // 90) % 3]) for i in range(100)]
    go = paused(engine)
    answers = [engine.submit(label(node, name)) for node, name in wanted]
    bad = engine.submit(label("who"))
    go.set()
    states = {id(answer.result(60).state) for answer in answers}
    assert len(states) == 1
    assert engine.counts.solves == 1
    assert engine.state.version == len(engine.journal.entries()) == 100
    with pytest.raises(InputError, match="node 'who' is not in the graph"):
        bad.result(60)
    loaded = lignn.load(original)
    loaded.update_labels(dict(wanted))
    np.testing.assert_array_equal(engine.state.decision(slice(None)).probabilities, loaded.decision().probabilities)
    assert engine.state.evidence.tolist() == loaded.decision().evidence.tolist()


def test_the_first_change_finds_its_kernels_compiled(tmp_path, monkeypatch):
    """A proved model needs no solve to be opened, but one is run, which does not change its state."""
    fitted(max_epochs=2, contraction="proved").save(tmp_path / "model")
    steps, solve = [], FusedStep.solve
    monkeypatch.setattr(FusedStep, "solve", lambda step, *args: steps.append(step) or solve(step, *args))
    engine = opened(tmp_path / "model")
    assert len(steps) == 1
    engine.close()
    loaded = lignn.load(tmp_path / "model").decision()
    np.testing.assert_array_equal(engine.state.decision(slice(None)).probabilities, loaded.probabilities)
    assert engine.counts.solves == engine.state.version == 0


def test_readers_see_whole_states_while_labels_come(engine):
    """Every state has as many labels as its version says."""
    first = int(engine.state.draft.labels.mask.sum())
    seen, ended = [], threading.Event()

    def read():
        while not ended.is_set():
            state = engine.state
            seen.append(
                (state.version, int(state.draft.labels.mask.sum()) - first, state.fitted.prediction.problem.labels)
            )

    reader = threading.Thread(target=read)
    reader.start()
    for node in UNKNOWN[:15]:
        engine.submit(label(node)).result(60)
    ended.set()
    reader.join()
    assert all(version == labels and int(known.mask.sum()) - first == labels for version, labels, known in seen)
    assert len({version for version, _, _ in seen}) > 1


def test_replay_gives_the_same_state(model, engine):
    changes = [
        [Change("label", UNKNOWN[0], "b")],
        [Change("node", "new", {"features": [0.1] * 6}), Change("edge", '["node1", "new"]', {})],
        [Change("label", "new", "c")],
        [Change("features", "node5", {"2": 7.5})],
        [Change("edge", '["node0", "node1"]', {})],
        [Change("node", "node7", None)],
        [Change("edge", '["node0", "node1"]', None)],
        [Change("label", UNKNOWN[0], None)],
    ]
    for one in changes:
        engine.submit(Request(one, "Ada")).result(60)
    before = engine.state
    engine.close()
    after = opened(model)
    assert after.skipped == ()
    assert after.state.version == before.version == 9
    assert list(after.state.ids) == list(before.ids)
    assert after.state.given_labels() == before.given_labels()
    np.testing.assert_allclose(
        after.state.decision(slice(None)).probabilities, before.decision(slice(None)).probabilities, atol=1e-12
    )
    removed = next(e for e in after.journal.entries(kind="node", key="node7"))
    assert set(removed.change.old) == {"features", "label", "edges"}
    assert len(removed.change.old["edges"]) == int((small_graph().edge_index == 7).any(0).sum())
    after.close()


def test_a_replaced_model_gets_the_labels_of_the_journal(model, engine):
    engine.submit(label(UNKNOWN[0], "b")).result(60)
    engine.submit(label(UNKNOWN[1], "c")).result(60)
    engine.close()
    graph = small_graph().replace(class_names=("a", "b", "d"))
    fitted("lpa", graph=graph).save(model)
    after = opened(model)
    assert after.state.label(UNKNOWN[0]) == "b"
    assert after.state.label(UNKNOWN[1]) == "c"
    assert after.state.new_classes == {"c": 1}
    after.close()


def test_a_journal_that_cannot_be_written_changes_nothing(engine, monkeypatch):
    before = engine.state

    def full(_):
        raise JournalError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(engine.journal, "append", full)
        with pytest.raises(JournalError, match="full"):
            engine.submit(label(UNKNOWN[0])).result(60)
    assert engine.state is before
    assert engine.submit(label(UNKNOWN[0])).result(60).state.version == 1


def test_a_solve_that_fails_is_taken_back(engine, monkeypatch):
    before = engine.state

    def broken(*_):
        raise RuntimeError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(engines.Work, "solved", broken)
        with pytest.raises(RuntimeError, match="no memory"):
            engine.submit(label(UNKNOWN[0])).result(60)
    assert engine.state is before
    assert engine.journal.entries() == []
    engine.submit(label(UNKNOWN[1])).result(60)
    assert [entry.change.key for entry in engine.journal.entries()] == [UNKNOWN[1]]


def test_one_who_leaves_before_the_answer_stops_nobody(engine):
    go = paused(engine)
    left, stays = engine.submit(label(UNKNOWN[0])), engine.submit(label(UNKNOWN[1]))
    assert left.cancel()
    go.set()
    assert stays.result(60).state.version == 1
    assert [entry.change.key for entry in engine.journal.entries()] == [UNKNOWN[1]]
    assert engine.submit(label(UNKNOWN[2])).result(60).state.version == 2


def test_versions_within_a_burst(engine):
    go = paused(engine)
    first = engine.submit(label(UNKNOWN[0], "a"))
    second = engine.submit(Request([Change("label", UNKNOWN[0], "b")], "Bo", expected=0))
    go.set()
    first.result(60)
    with pytest.raises(ConflictError, match="was changed after version 0"):
        second.result(60)


def test_too_many_requests_and_a_service_that_starts(model, engine, monkeypatch):
    monkeypatch.setattr(engines, "MOST_WAITING", 2)
    go = paused(engine)
    waiting = [engine.submit(label(node)) for node in UNKNOWN[:1]]
    with pytest.raises(OverloadedError, match="too many changes"):
        [engine.submit(label(node)) for node in UNKNOWN[1:5]]
    go.set()
    waiting[0].result(60)
    unopened = Engine(engine.place)
    with pytest.raises(StartingError, match="is starting"):
        unopened.submit(label("node1"))


def test_a_fault_at_the_start_is_told(model, monkeypatch):
    def broken(_):
        raise RuntimeError("no memory")

    monkeypatch.setattr(Place, "open", broken)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    engine = Engine(Place.of(str(model), Source(str(model)), None, None))
    engine.start()
    engine.opened.wait(60)
    assert "no memory" in engine.failure
    engine.close()
    assert not engine.place.journal.exists()


def test_a_model_that_cannot_be_read_is_told(model):
    shutil.rmtree(next(model.glob("generation-*")))
    engine = Engine(Place.of(str(model), Source(str(model)), None, None))
    engine.start()
    engine.opened.wait(60)
    assert "there is no model here" in engine.failure
    engine.close()


def test_training_data_hold_back_what_was_held_back(engine):
    """Test labels are not in them, unless they were given since; validation labels stay validation."""
    engine.submit(label(UNKNOWN[0], "b")).result(60)
    engine.submit(Request([Change("label", UNKNOWN[1], "new")], "Ada", new_classes=True)).result(60)
    graph, split = training_data(engine.state)
    numbers = [int(node.removeprefix("node")) for node in UNKNOWN]
    given = torch.zeros(90, dtype=torch.bool)
    given[numbers[:2]] = True
    assert torch.equal(split.train, small_split().train | given)
    assert torch.equal(split.val, small_split().val)
    assert (graph.y[numbers[2:]] == -1).all()
    assert graph.class_names == ("a", "b", "c", "new")
    assert graph.y[numbers[:2]].tolist() == [1, 3]
    kept = small_split().train | small_split().val
    assert torch.equal(graph.y[kept], small_graph().y[kept])
