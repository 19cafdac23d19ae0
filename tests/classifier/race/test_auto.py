"""A race: what it chooses, what it may see, and the one model that comes out."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lignn
from lignn import Graph, NodeClassifier, Split
from lignn.classifier.race import auto, fold_fits, greedy
from lignn.classifier.race.candidates import Candidate, candidates
from lignn.classifier.race.fold_fits import Outcome, Setup, Task
from lignn.classifier.race.folds import Fold, folds
from lignn.classifier.race.greedy import choose
from lignn.classifier.race.judge import Judge
from lignn.classifier.race.leaderboard import Leaderboard
from lignn.classifier.race.search import Search, rungs
from lignn.declarations import is_race
from lignn.errors import ConfigError, InputError
from lignn.runs import workers
from lignn.training import Metric, checkpoint
from tests.faults.test_leaks import flipped
from tests.problems import random_graph
from tests.stores import stored

N = 60
QUICK = {"max_epochs": 2, "hidden": 4}


def graph(seed: int = 1) -> Graph:
    return random_graph(n=N, seed=seed).replace(node_ids=[f"n{i}" for i in range(N)])


def parts(with_validation: bool = True) -> Split:
    part = torch.arange(N) % 3
    nothing = torch.zeros(N, dtype=torch.bool)
    return Split(part == 0, part == 1 if with_validation else nothing, part == 2)


AHEAD = "not tried: others are ahead of it in cheaper ways"
GIVEN = {"method": "auto", "quality": "fast", "precision": "float64", **QUICK}


def fitted(version: Graph, split: Split | None, **options: object) -> NodeClassifier:
    return NodeClassifier(**GIVEN | {"backbones": ["gcn"]} | options).fit(version, split)


def test_candidates_are_what_a_graph_has_the_parts_for() -> None:
    names = [one.name for one in candidates(graph(), "good")]
    assert {"lpa", "logistic", "logistic/features", "logistic/smoothed", "boosted", "gcn", "sage", "mlp"} <= set(names)
    assert {"gcn/lignn/free", "gcn/lignn/proved", "gat", "deep_gcn/lignn", "mlp/correct_and_smooth"} <= set(names)
    assert {"boosted/label_input", "boosted/label_reuse"} <= set(names)
    assert "mlp/label_input" not in names
    assert len(names) == len(set(names))
    bare = {one.name for one in candidates(graph().replace(x=None))}
    assert "lpa" in bare
    assert not bare & {"gcn", "mlp", "logistic/features"}
    alone = Graph(torch.zeros(2, 0, dtype=torch.int64), x=torch.rand(9, 2), y=[0, 1, 0, 1, 0, 1, 0, 1, -1])
    assert {one.name for one in candidates(alone)} == {"logistic/features", "boosted/features", "mlp"}
    types = random_graph(n=N, seed=1, edge_types=("a", "b"))
    assert "rgcn/lignn/free" in {one.name for one in candidates(types)}
    with pytest.raises(ConfigError, match="backbones: 'saeg' is unknown; did you mean 'sage'"):
        candidates(graph(), backbones=["saeg"])


@pytest.mark.parametrize("with_validation", [True, False])
def test_folds_score_on_labels_that_a_fit_is_not_given(with_validation: bool) -> None:
    whole, split = graph(), parts(with_validation)
    found = folds(whole, split, 4, seed=0)
    divided = split.val if with_validation else split.train
    assert torch.equal(torch.stack([fold.scored for fold in found]).sum(0), divided.long())
    for fold in found:
        seen = fold.visible(whole).labelled
        assert not (seen & fold.scored).any()
        assert not (seen & split.test).any()
        if with_validation:
            assert torch.equal(fold.split.train, split.train)  # validation labels are never trained on


def test_groups_stay_together_and_time_has_one_fold() -> None:
    grouped = graph().replace(group=np.arange(N) % 7)
    for fold in folds(grouped, parts(False), 3, seed=0):
        inside = {int(number) for number in grouped.group[fold.scored.numpy()]}
        assert not inside & {int(number) for number in grouped.group[fold.split.train.numpy()]}
    timed = graph().replace(time=np.arange(N, dtype=float))
    (fold,) = folds(timed, parts(False), 4, seed=0)
    assert timed.time[fold.scored.numpy()].min() > timed.time[fold.split.train.numpy()].max()


def toy(scores: dict[str, list[list[int]]], truth: list[list[int]]) -> Search:
    """A search that is done: predicted classes of every candidate by fold."""
    y = torch.tensor([label for fold in truth for label in fold])
    ends = np.cumsum([0, *map(len, truth)])
    masks = [(torch.arange(len(y)) >= a) & (torch.arange(len(y)) < b) for a, b in pairwise(ends)]
    nothing = torch.zeros(len(y), dtype=torch.bool)
    parts = tuple(Fold(Split(~mask, nothing, mask), mask) for mask in masks)
    names = tuple(Candidate(name, name, "lpa", ("labels",)) for name in scores)
    setup = Setup(Graph([[0], [1]], y=y), parts, names, {}, Metric())
    results = {
        Task(number, fold): Outcome(torch.nn.functional.one_hot(torch.tensor(labels), 3).float(), 1.0, 1.0)
        for number, of in enumerate(scores.values())
        for fold, labels in enumerate(of)
    }
    return Search(setup, results=results, alive=list(range(len(names))), reached=len(truth))


def test_ties_go_to_the_simpler_and_an_ensemble_has_to_win_elsewhere() -> None:
    truth = [[0, 1, 2], [0, 1, 2]]
    same = toy({"first": truth, "second": truth}, truth)
    assert choose(same, Judge.of(same.setup)) == greedy.Choice({0: 1.0}, 1.0, 1.0, runner_up=1)
    # each is wrong at another place: three votes are always right
    wrong = [[[1, 1, 2], [1, 1, 2]], [[0, 2, 2], [0, 2, 2]], [[0, 1, 0], [0, 1, 0]]]
    votes = toy(dict(zip("abc", wrong, strict=True)), truth)
    found = choose(votes, Judge.of(votes.setup))
    assert found.ensemble is not None
    assert found.ensemble >= found.single == pytest.approx(2 / 3)


def test_a_greedy_ensemble_is_of_at_most_five_and_grows_only_if_it_is_better() -> None:
    truth = [[0, 1, 2, 0]]
    found = toy({"a": [[0, 1, 2, 1]], "b": [[0, 2, 2, 0]]}, truth)
    judge = Judge.of(found.setup)
    assert len(greedy.greedy(found, judge, [0, 1], [0])) <= greedy.MEMBERS
    assert greedy.greedy(found, judge, [0], [0]) == [0]


def test_ties_go_to_what_can_be_relied_on_then_to_what_takes_labels() -> None:
    truth = [[0, 1, 2] * 10, [0, 1, 2] * 10]
    found = toy({"unsure": truth, "deaf": truth, "hears": truth, "wrong": [[1, 1, 2] * 10] * 2}, truth)
    judge = Judge.of(found.setup)

    def outcomes(number: int, **changed: Any) -> None:
        for fold in (0, 1):
            found.results[Task(number, fold)] = replace(found.results[Task(number, fold)], **changed)

    outcomes(0, depends=0.02, takes_labels=True)
    outcomes(2, takes_labels=True)
    assert choose(found, judge).weights == {2: 1.0}
    outcomes(1, depends=0.02)
    outcomes(2, depends=0.02)
    found.alive = [0, 3]  # it leads by more than the error
    assert choose(found, judge).weights == {0: 1.0}
    assert choose(found, judge).runner_up == 3
    found.alive = [0]  # all others were out before
    assert choose(found, judge).runner_up == 3


def test_members_have_to_be_fitted_once_more_in_the_time_that_is_left() -> None:
    truth = [[0, 1, 2], [0, 1, 2]]
    wrong = [[[1, 1, 2], [1, 1, 2]], [[0, 2, 2], [0, 2, 2]], [[0, 1, 0], [0, 1, 0]]]
    votes = toy(dict(zip("abc", wrong, strict=True)) | {"best": truth}, truth)
    for task, one in votes.results.items():
        votes.results[task] = replace(one, elapsed=float(1 + task.candidate))
    judge = Judge.of(votes.setup)
    assert choose(votes, judge, left=4).weights == {3: 1.0}
    assert 3 not in choose(votes, judge, left=3.5).weights
    assert sum(votes.elapsed(each) for each in choose(votes, judge, left=3.5).weights) <= 3.5
    assert choose(votes, judge, left=0.1).weights == {0: 1.0}  # the quickest


def test_a_fit_of_correct_and_smooth_is_that_of_its_first_stage_too() -> None:
    for split in (parts(), parts(False)):
        setup = auto.setup_of(GIVEN, graph(), split)
        number = {one.name: place for place, one in enumerate(setup.candidates)}
        for whole, first in (("gcn/correct_and_smooth", "gcn"), ("logistic/smoothed", "logistic")):
            both = fold_fits.perform(setup, Task(number[whole], 1))
            assert list(both) == [Task(number[whole], 1), Task(number[first], 1)]
            alone = fold_fits.perform(setup, Task(number[first], 1))
            ours, theirs = (found[Task(number[first], 1)].probabilities for found in (both, alone))
            assert torch.equal(ours, theirs)


def test_a_search_does_not_fit_twice_what_is_a_part_of_another_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, perform = [], fold_fits.perform
    monkeypatch.setattr(fold_fits, "perform", lambda setup, task: calls.append(task) or perform(setup, task))
    model = fitted(graph(), parts(False))
    names = [one.name for one in candidates(graph(), "fast", ["gcn"])]
    first = {names[task.candidate] for task in calls if task.fold == 0}
    assert not first & {"gcn", "logistic"}
    assert {"gcn", "logistic"} <= {row.name for row in model.leaderboard_.rows if row.folds} <= set(names)


def told(setup: Setup, wrong: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> Search:
    """A race whose candidates of a family are wrong at so many nodes, and at one of others."""
    y = setup.graph.y
    assert y is not None

    def perform(setup: Setup, task: Task) -> dict[Task, Outcome]:
        found = y[setup.folds[task.fold].scored].clone()
        count = wrong.get(setup.candidates[task.candidate].family, 1)
        found[:count] = (found[:count] + 1) % 3
        return {task: Outcome(torch.nn.functional.one_hot(found, 3).float(), 1.0, 1.0)}

    monkeypatch.setattr(fold_fits, "perform", perform)
    monkeypatch.setattr(Setup, "inside", lambda *_: None)
    found = Search(setup)
    found.run(1, None, lambda *_: None)
    return found


def names_of(search: Search, numbers: Iterable[int]) -> set[str]:
    return {search.setup.candidates[number].name for number in numbers}


def whole_split(n: int) -> Split:
    everything = torch.ones(n, dtype=torch.bool)
    return Split(everything, ~everything, ~everything)


def test_costly_ways_are_tried_on_the_best_network_and_depth_needs_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = auto.setup_of({}, random_graph(n=150, seed=1), whole_split(150))
    found = told(setup, {"sage": 15, "mlp": 15, "boosted": 15}, monkeypatch)
    behind = names_of(found, found.behind)
    assert {"sage/label_input", "sage/lignn/free", "sage/lignn/proved", "boosted/label_reuse"} <= behind
    assert {"deep_gcn/label_input", "deep_gcn/lignn"} <= behind
    assert {"gcn/label_input", "gcn/lignn/free", "gat"} <= names_of(found, (task.candidate for task in found.results))
    many = auto.setup_of({}, random_graph(n=900, seed=1), whole_split(900))
    found = told(many, {}, monkeypatch)
    assert "deep_gcn/label_input" in names_of(found, (task.candidate for task in found.results))


def test_the_budget_of_counted_work_decides_what_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = replace(auto.setup_of({}, random_graph(n=300, seed=1), whole_split(300)), budget=0.0)
    found = told(setup, {}, monkeypatch)
    assert {setup.candidates[task.candidate].stage for task in found.results} == {0, 1}
    assert names_of(found, found.beyond) >= {"gat", "deep_gcn/label_input"}


def test_a_time_that_is_over_leaves_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(number: int, function: Any, rounds: Any, *_: Any) -> Iterator[Any]:
        first = next(rounds)
        yield from ((task, function(task)) for task in first[:number])

    monkeypatch.setattr(auto, "_LITTLE", 0.0)  # in other processes, however little there is to do
    monkeypatch.setattr(workers, "in_rounds", partial(begun, 3))
    board = fitted(graph(), parts(), time=1000, jobs=2).leaderboard_
    assert board.stopped
    assert {"lpa", "logistic/features"} < {row.name for row in board.rows if row.folds}
    assert all(row.note == "not tried: the time was over" for row in board.rows if not row.folds)
    assert "the time was over before all candidates were tried on all folds" in board.notes
    monkeypatch.setattr(workers, "in_rounds", partial(begun, 0))
    assert (
        fitted(graph(), parts(), time=1000, jobs=2).leaderboard_.headline == "The model is LPA"
    )  # the simplest, in any case


def test_training_in_this_process_ends_with_the_time() -> None:
    setup = auto.setup_of(GIVEN | {"backbones": ["gcn"]}, graph(), parts())
    number = {one.name: place for place, one in enumerate(setup.candidates)}
    with pytest.raises(fold_fits.TimeOverError):
        fold_fits.perform(setup, Task(number["gcn/label_input"], 0), until=0.0)
    board = fitted(graph(), parts(), time=1e-9).leaderboard_
    assert board.stopped
    assert [row.name for row in board.rows if row.folds] == ["lpa"]


@pytest.mark.parametrize(
    ("version", "split"),
    [
        pytest.param(random_graph(n=N, num_classes=2, seed=1), parts(), id="two classes"),
        pytest.param(random_graph(n=N, multilabel=True, seed=1), parts(), id="several classes per node"),
        pytest.param(graph().replace(x=None), parts(), id="no features"),
        pytest.param(graph().replace(x=None), None, id="no features, no split"),
        pytest.param(random_graph(n=N, seed=1, edge_types=("a", "b")), parts(), id="types of edges"),
    ],
)
def test_graphs_of_all_kinds(version: Graph, split: Split | None) -> None:
    model = fitted(version, split, backbones=None)
    assert model.predict_proba().shape == (N, version.num_classes)
    assert sum(row.weight for row in model.leaderboard_.rows) == pytest.approx(1)
    assert {row.note for row in model.leaderboard_.rows if not row.folds} <= {AHEAD}
    assert all((row.score is None) == (not row.folds) for row in model.leaderboard_.rows)


def test_two_labels_a_class_are_enough() -> None:
    whole = graph()
    few = torch.cat([(whole.y == c).nonzero().flatten()[:2] for c in range(3)])
    known = torch.full_like(whole.y, -1)
    known[few] = whole.y[few]
    board = fitted(whole.replace(y=known), None).leaderboard_
    assert board.scored == 6
    assert board.members
    assert all(row.score is not None for row in board.rows)


def test_ctrl_c_within_a_fit_keeps_no_half_trained_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain, calls = fold_fits.fitting.fit, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        return replace(plain(*arguments), interrupted=len(calls) == 2)

    monkeypatch.setattr(fold_fits.fitting, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        NodeClassifier(**GIVEN).fit(graph(), parts(), checkpoint=tmp_path / "search")
    assert list(checkpoint.read(tmp_path / "search")["results"]) == ["0:0"]


def test_few_labels_need_all_folds_and_many_only_one() -> None:
    def of(n: int) -> list[int]:
        known = torch.ones(n, dtype=torch.bool)
        return rungs(folds(random_graph(n=n, seed=1), Split(known, ~known, ~known), 4, seed=0))

    assert of(20) == [4]  # 5 labels a fold: all folds are needed for 30
    assert of(200) == [1, 2, 4]
    assert of(1200) == [1]


@pytest.fixture(scope="module")
def model() -> NodeClassifier:
    return fitted(graph(), parts())


def test_it_is_one_model(model: NodeClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.predict_proba(), model.predict_proba())
    assert loaded.leaderboard_ == model.leaderboard_
    assert Leaderboard.restored(model.leaderboard_.plain()) == model.leaderboard_
    assert loaded.decision().labels.shape == (N,)
    assert 0 <= loaded.score() <= 1
    loaded.update_labels({"n2": 0, "n0": None})
    assert len(loaded.add_nodes(torch.zeros(1, 5), [["n0"], ["new"]], ["new"])) == 1
    assert str(loaded.diagnose())


def ensemble(version: Graph, monkeypatch: pytest.MonkeyPatch) -> NodeClassifier:
    """A model that consists of LPA, boosted trees and Label Input."""
    weights = {"lpa": 0.2, "boosted/label_input": 0.4, "gcn/label_input": 0.4}

    def chosen(found: Search, judge: Judge, left: float) -> greedy.Choice:
        number = {one.name: place for place, one in enumerate(found.setup.candidates)}
        found.alive, found.reached = sorted(number[name] for name in weights), 1
        return greedy.Choice({number[name]: weight for name, weight in weights.items()}, 0.5, 0.6)

    monkeypatch.setattr(auto, "choose", chosen)
    return fitted(version, parts())


def test_an_ensemble_is_the_mean_of_its_members(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = ensemble(graph(), monkeypatch)
    members = found._fitted.prediction.bound.members
    heat, weights = found.method_.temperatures, found.method_.weights
    rows = [
        torch.softmax(one.solve().probabilities.clamp(min=1e-12).log() / t, 1)
        for one, t in zip(members, heat, strict=True)
    ]
    expected = sum(weight * row for weight, row in zip(weights, rows, strict=True))
    torch.testing.assert_close(found._fitted.prediction.probabilities, expected, rtol=0, atol=1e-9)
    assert found.leaderboard_.headline.startswith("The model is an ensemble of ")
    found.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(), found.predict_proba())
    assert str(loaded.explain("n2")).startswith("node n2")
    loaded.update_labels({"n2": 0})
    loaded.update_labels({"n5": 1}, epochs=1)
    assert loaded.predict().shape == (N,)
    assert loaded.predict_proba(graph(seed=2)).shape == (N, 3)
    assert len(loaded.add_nodes(torch.zeros(1, 5), [["n0"], ["new"]], ["new"])) == 1


@pytest.mark.parametrize("with_validation", [True, False])
def test_test_labels_change_nothing(with_validation: bool) -> None:
    split, whole = parts(with_validation), graph()
    one, other = (fitted(version, split) for version in (whole, flipped(whole, split.test)))
    assert np.array_equal(one.predict_proba(), other.predict_proba())
    rows = [[(row.name, row.score, row.weight) for row in each.leaderboard_.rows] for each in (one, other)]
    assert rows[0] == rows[1]
    assert one.leaderboard_.findings == other.leaderboard_.findings
    trained = fitted(flipped(whole, split.train), split)
    assert not np.array_equal(one.predict_proba(), trained.predict_proba())


def test_validation_labels_choose_and_calibrate_only() -> None:
    """Members that both choose have the same weights, since nothing was trained on these labels."""
    split, whole = parts(), graph()
    both = [fitted(version, split, backbones=["mlp"]) for version in (whole, flipped(whole, split.val))]
    for version, model in zip((whole, flipped(whole, split.val)), both, strict=True):
        labels = model._fitted.prediction.problem.labels
        assert not (labels.mask & split.val).any()
        for row in model.leaderboard_.members:
            found = {one.name: one for one in candidates(version, "fast", ["mlp"])}[row.name]
            alone = NodeClassifier(**found.with_common({**QUICK, "precision": "float64"})).fit(version, split)
            assert not (alone._fitted.prediction.problem.labels.mask & split.val).any()


def test_a_search_goes_on_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, whole, split = tmp_path / "search", graph(), parts(False)
    calls, perform = [], fold_fits.perform

    def counted(setup: Setup, task: Task) -> dict[Task, Outcome]:
        if len(calls) == 5:
            raise KeyboardInterrupt
        calls.append(task)
        return perform(setup, task)

    given = GIVEN | {"backbones": ["mlp"]}
    monkeypatch.setattr(fold_fits, "perform", counted)
    with pytest.raises(KeyboardInterrupt):
        NodeClassifier(**given).fit(whole, split, checkpoint=file)
    monkeypatch.setattr(fold_fits, "perform", perform)
    again = NodeClassifier(**given).fit(whole, split, checkpoint=file)
    fresh = NodeClassifier(**given).fit(whole, split)
    assert np.array_equal(again.predict_proba(), fresh.predict_proba())
    with pytest.raises(InputError, match="the results of another search"):
        NodeClassifier(**given | {"seed": 1}).fit(whole, split, checkpoint=file)


def test_bad_input() -> None:
    for given, message in (
        ({"quality": "superb"}, "quality 'superb' is unknown"),
        ({"time": -1}, "time: a positive number of seconds"),
        ({"jobs": 0}, "jobs: at least 1"),
        ({"method": "auto", "backbone": "gcn"}, "backbone: auto chooses it"),
        ({"method": "lpa", "quality": "fast"}, "quality: method 'lpa' has no such parameter, only auto"),
    ):
        with pytest.raises(ConfigError, match=message):
            NodeClassifier(**given).fit(graph())
    with pytest.raises(InputError, match="too few labels to choose a model by"):
        NodeClassifier().fit(Graph([[0, 1], [1, 2]], y=[0, 1, -1]))


def test_a_race_is_the_default_and_an_option_of_one_method_names_lignn() -> None:
    assert all(is_race(given) for given in ({}, {"seed": 3, "metric": "roc_auc"}, {"method": "auto", "hidden": 4}))
    assert is_race({"quality": "fast", "hidden": 4})
    for given in ({"backbone": "gcn"}, {"contraction": "free"}, {"preset": "paper"}, {"hidden": 4}, {"method": "lpa"}):
        assert not is_race(given)
    model = NodeClassifier(hidden=4, max_epochs=2).fit(graph(), parts())
    assert (model._fitted.spec.method, model._fitted.spec.backbone) == ("lignn", "gcn")
    assert model.leaderboard_ is None


def test_the_former_name_is_an_alias() -> None:
    with pytest.warns(DeprecationWarning, match="AutoClassifier is NodeClassifier"):
        found = lignn.AutoClassifier("fast", backbones=["gcn"], parameters={"hidden": 4})
    wanted = NodeClassifier(method="auto", quality="fast", backbones=["gcn"], hidden=4)
    assert found.get_params() == wanted.get_params()


def test_a_store_gets_the_default_method(tmp_path: Path) -> None:
    store = stored(graph(), tmp_path / "store", parts=2)
    with pytest.raises(ConfigError, match="is a store, in which methods cannot race; name one by method="):
        NodeClassifier(method="auto").fit(store, parts())
    model = NodeClassifier(seed=1).fit(store, parts())
    assert (model._fitted.spec.method, model.leaderboard_) == ("lignn", None)


def test_a_race_that_nobody_can_run_says_why() -> None:
    with pytest.raises(InputError, match="no model could be fitted; the first said: "):
        NodeClassifier(**GIVEN, batch_parts=2).fit(graph(), parts())
