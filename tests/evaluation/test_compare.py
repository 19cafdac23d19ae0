from dataclasses import replace
from typing import Any

import pytest
import torch

from lignn import Graph, NodeClassifier, Split, datasets, splits
from lignn.classifier.race.candidates import candidates
from lignn.datasets.sources import Source
from lignn.errors import ConfigError, InputError, LignnError, SplitError
from lignn.evaluation import compare
from lignn.evaluation.compare import Comparison, Result, SplitCase
from lignn.runs import workers

GRAPH = {"name": "toy", "nodes": 9, "edges": 8, "features": 2, "classes": 2, "labelled": 6}


FEATURES = datasets.load("karate").replace(x=torch.rand(34, 2))
MODELS = [one.name for one in compare.chosen(FEATURES, {})]
PROVED = "gcn/lignn/proved"


def comparison(scores: dict[str, list[float]]) -> Comparison:
    results = [
        Result(method, number, score, score, seconds=2.0 + number, epochs=1, curve=(score,))
        for method, values in scores.items()
        for number, score in reversed(list(enumerate(values)))
    ]
    return Comparison(GRAPH, tuple(compare.chosen(FEATURES, {})), {}, tuple(results), 50.0)


def performed(monkeypatch: pytest.MonkeyPatch, *given: Any, **more: Any) -> list[SplitCase]:
    """Return what `compare` runs; the runs take no time."""
    runs: list[SplitCase] = []

    def perform(run: SplitCase) -> Result:
        runs.append(run)
        return Result(run.method, run.number, 0.5, 0.5, 1.0, 1, (0.5,))

    monkeypatch.setattr(compare, "perform", perform)
    compare.compare(Source("karate"), *given, **more)
    return runs


def test_every_method_meets_every_split_with_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = performed(monkeypatch, {"seed": 5, "hidden": 8}, runs=3)
    names = [one.name for one in candidates(datasets.load("karate"), "best", ["gcn"])]
    assert {run.method for run in planned} == set(names)
    for method in names:
        own = [run for run in planned if run.method == method]
        assert [(run.number, run.parameters["seed"]) for run in own] == [(0, 5), (1, 6), (2, 7)]


def test_a_method_is_given_the_parameters_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"mask_rate": 0.25, "max_steps": 9, "feature_mask": 0.5, "lr": 0.1, "preset": "paper"}
    planned = {run.method: set(run.parameters) for run in performed(monkeypatch, given, runs=1)}
    all_have = {"method", "lr", "preset", "seed", "metric"}
    ours = {"mask_rate", "max_steps", "feature_mask", "contraction", "backbone"}
    assert planned["gcn/lignn/free"] == ours | all_have
    assert planned["gcn/label_input"] == {"mask_rate", "backbone"} | all_have
    assert planned["gcn"] == {"backbone"} | all_have
    assert planned["lpa"] == all_have


def test_an_adaptive_mask_rate_is_lignns(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = performed(monkeypatch, {"mask_rate": "adaptive"}, runs=1)
    assert {run.parameters["method"] for run in planned if "mask_rate" in run.parameters} == {"lignn"}


def test_a_contraction_that_is_given_rules_out_the_other_one() -> None:
    for given, rows in ({"free": ["free"], "proved": ["proved"], "auto": ["proved", "free"]}).items():
        names = [one.name for one in compare.chosen(FEATURES, {"contraction": given})]
        assert [name for name in names if name.startswith("gcn/lignn")] == [f"gcn/lignn/{row}" for row in rows]


def test_own_splits_are_taken_in_turn() -> None:
    y = torch.tensor([0, 1] * 5)
    first, second = (Split.from_indices(10, range(6), *parts) for parts in (([6, 7], [8, 9]), ([8, 9], [6, 7])))
    graph = Graph([[0], [1]], y=y, splits=[first, second])
    assert compare.split_of(graph, 0) is first
    assert compare.split_of(graph, 3) is second


def test_splits_without_test_labels_are_not_scored_on() -> None:
    y = torch.tensor([0, 1] * 10 + [-1] * 2)
    own = Split.from_indices(22, range(10), range(10, 20), [20, 21])
    graph = Graph([[0], [1]], y=y, splits=[own])
    drawn = compare.split_of(graph, 4)
    expected = splits.stratified(graph, (0.6, 0.2, 0.2), seed=4)
    assert torch.equal(drawn.test, expected.test)
    assert int(drawn.test.sum()) == 4


def test_splits_without_validation_labels_hold_some_back_and_keep_their_test_part() -> None:
    own = Split.from_indices(20, range(10), [], range(10, 20))
    graph = Graph([[0], [1]], y=torch.tensor([0, 1] * 10), splits=[own])
    first, second = (compare.split_of(graph, number) for number in (0, 1))
    assert torch.equal(first.test, own.test)
    assert int(first.val.sum()) == 2
    assert torch.equal(first.train | first.val, own.train)
    assert not torch.equal(first.val, second.val)


def test_too_few_labels() -> None:
    with pytest.raises(SplitError, match="graph: 2 labelled nodes are too few to train, choose and test on"):
        compare.split_of(Graph([[0], [1]], y=[0, 1]), 0)


def test_rows_pair_the_runs_whatever_their_order() -> None:
    found = comparison({PROVED: [0.9, 0.7, 0.8], "gcn": [0.5, 0.4, 0.3]})
    base, lignn = found.rows
    assert (base.title, lignn.title) == ("GCN", "LI-GCN, proved")
    assert base.scores == (50.0, 40.0, 30.0)
    assert base.difference is None
    assert base.seconds == 3.0
    assert base.score == "40.00 ± 10.00"
    assert lignn.difference is not None
    assert lignn.difference.mean == pytest.approx((40 + 30 + 50) / 3)
    # differences 40, 30, 50: deviation 10, t of 2 degrees of freedom 4.3027
    assert lignn.difference.high == pytest.approx(40 + 4.30265 * 10 / 3**0.5, abs=1e-3)
    assert lignn.gain == "+40.00 [+15.16, +64.84]"


def test_the_verdict() -> None:
    base = [0.50, 0.40, 0.30]
    assert comparison({"gcn": base, "lpa": [0.80, 0.70, 0.605]}).verdict == (
        "Yes: LPA is 30.2 points above GCN alone (+30.17 [+29.45, +30.88], p < 0.001; 3 runs, best of 1)."
    )
    worse = comparison({"gcn": base, "lpa": [0.20, 0.10, 0.005]}).verdict
    assert worse.startswith("No: every method that is given labels is worse; at best, LPA is 29.8 points below GCN")
    unsure = comparison({"gcn": base, "lpa": [0.55, 0.30, 0.35]}).verdict
    assert unsure.startswith("Not clearly: at best, LPA is 0.0 points")


def test_a_verdict_holds_for_all_methods_tried_at_once() -> None:
    base, better = [0.50, 0.40, 0.30], [0.62, 0.50, 0.45]  # p 0.015 alone, 0.077 among five
    assert comparison({"gcn": base, PROVED: better}).verdict.startswith("Yes")
    among = {"gcn": base, **dict.fromkeys(["lpa", "logistic", "boosted", "gcn/label_input"], base), PROVED: better}
    assert comparison(among).verdict.startswith("Not clearly: at best, LI-GCN, proved is 12.3 points above")


def test_one_run_has_no_interval() -> None:
    found = comparison({"gcn": [0.5], PROVED: [0.75]})
    assert found.rows[1].gain == "+25.00"
    assert found.verdict.startswith("In this one run LI-GCN, proved is 25.0 points above GCN alone; more runs")


def test_the_winner_is_named_only_beyond_chance() -> None:
    base, better = [0.50, 0.40, 0.30], [0.80, 0.70, 0.605]
    assert comparison({"gcn": base, "lpa": better}).winner == "LPA is the best of 2 models, beyond chance."
    unsure = comparison({"gcn": base, "lpa": better, "logistic/features": [0.79, 0.72, 0.6]}).winner
    assert unsure == (
        "logistic regression, features only has the best mean, 70.33 ± 9.61, but chance does not rule out: LPA."
    )


def test_features_alone_are_no_label_method() -> None:
    found = comparison({"gcn": [0.5, 0.4], "logistic/features": [0.9, 0.8], "lpa": [0.5, 0.4]})
    assert "LPA is 0.0 points" in found.verdict


def test_the_same_model_under_another_name_is_told_and_cannot_win() -> None:
    found = comparison({"gcn": [0.5, 0.5], "gcn/correct_and_smooth": [0.5, 0.5], "lpa": [0.4, 0.3]})
    results = tuple(replace(r, idle=r.method == "gcn/correct_and_smooth") for r in found.results)
    found = replace(found, results=results)
    assert found.reservations == ["GCN + C&S, 2 of 2 runs: took no steps, the same as without C&S"]
    assert "C&S" not in found.verdict + found.winner
    assert [row.idle for row in found.rows] == [False, False, True]


def test_rows_are_what_auto_tries_with_the_network_alone_first() -> None:
    rows = compare.chosen(FEATURES, {}, backbones=["sage", "mlp"])
    assert {one.name for one in rows} == {one.name for one in candidates(FEATURES, "best", ["gcn", "sage", "mlp"])}
    assert rows[0].name == "gcn"
    assert compare.chosen(FEATURES, {"backbone": "sage"})[0].name == "sage"


def test_classifiers_of_tables_have_no_options_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    only = ["logistic/smoothed", "logistic", "boosted/label_input"]
    given = {"hidden": 4, "max_epochs": 3, "mask_rate": 0.3}
    found = {run.method: run.parameters for run in performed(monkeypatch, given, 1, only=only)}
    assert found["gcn"]["hidden"] == 4
    assert "hidden" not in found["logistic"]
    assert found["logistic/smoothed"]["method_options"] == {"base": "logistic"}
    assert found["boosted/label_input"]["method_options"]["base"] == "boosted"
    assert not {"hidden", "mask_rate", "backbone"} & set(found["boosted/label_input"])


def test_a_name_is_that_of_a_method_or_of_one_model() -> None:
    def names(*only: str, backbones: tuple[str, ...] = ("sage",)) -> list[str]:
        return [one.name for one in compare.chosen(FEATURES, {}, only, backbones)]

    inputs = {"boosted/label_input", "gcn/label_input", "sage/label_input", "deep_gcn/label_input"}
    assert set(names("label_input")) == {"gcn"} | inputs
    assert names("boosted") == ["gcn", "boosted"]
    assert names("sage/label_input", "sage") == ["gcn", "sage", "sage/label_input"]
    assert names("lignn", backbones=())[:3] == ["gcn", "gcn/lignn/proved", "gcn/lignn/free"]
    with pytest.raises(InputError, match="no method 'sage/lpa' to compare"):
        names("sage/lpa")


def test_equilibria_that_were_not_reached_are_told() -> None:
    found = comparison({"gcn": [0.5, 0.5], PROVED: [0.75, 0.7]})
    assert found.reservations == []
    results = tuple(replace(r, unsolved="budget used up") if r.method == PROVED else r for r in found.results)
    assert replace(found, results=results).reservations == ["LI-GCN, proved, 2 of 2 runs: budget used up"]


def test_the_most_frequent_label_is_that_of_training() -> None:
    y = [0, 0, 1, 1, 1, 0, 1, 0, 0, 0]
    split = Split.from_indices(10, [2, 3, 4, 5], [0, 1], [6, 7, 8, 9])
    report = NodeClassifier("lpa").fit(Graph([[0], [1]], y=y), split).report()
    assert (report.majority, report.baseline) == ("1", 0.25)


def test_a_run_is_a_function_of_its_parameters() -> None:
    run = SplitCase(Source("karate"), "x", 0, {"method": "label_input", "seed": 1, "max_epochs": 3, "hidden": 4})
    one, two = compare.perform(run), compare.perform(run)
    assert replace(one, seconds=0, report=None) == replace(two, seconds=0, report=None)
    assert one.report.plain() == two.report.plain()
    assert one.epochs == 3
    assert len(one.curve) == 3
    assert compare.perform(replace(run, parameters={**run.parameters, "seed": 2})).curve != one.curve


def test_nothing_to_compare_with() -> None:
    with pytest.raises(InputError, match="nothing to compare gcn with"):
        compare.chosen(FEATURES, {}, ["gcn"])


def test_bad_input_stays_bad_input_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = workers.Failure("dropout")
    failure.error = ConfigError("dropout must be below 1")
    monkeypatch.setattr(workers, "in_rounds", lambda _, rounds, *__: ((run, failure) for run in next(iter(rounds))))
    with pytest.raises(ConfigError, match=r"^dropout must be below 1$"):
        compare.compare(Source("karate"), {}, 1, 2, ["lpa"])


def test_a_run_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run, failure = SplitCase(Source("karate"), "lpa", 3, {"seed": 5}), workers.Failure("out of memory")
    monkeypatch.setattr(workers, "in_rounds", lambda *_: iter([(run, failure)]))
    with pytest.raises(LignnError, match="lpa, run 3, seed 5: out of memory"):
        compare.compare(Source("karate"), {}, 1, 2, ["lpa"])
