from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lignn.datasets.sources import Source
from lignn.declarations import PARAMETERS, Range
from lignn.errors import ConfigError, InputError
from lignn.evaluation import compare, tune
from lignn.evaluation.compare import Result, SplitCase
from lignn.graph import Graph
from lignn.runs import workers
from tests.faults.test_leaks import flipped, splits, whole

KARATE = Source("karate")


def scored(calls: list[SplitCase]) -> Any:
    """Instead of a fit: a validation score that depends on lr, and a test score that would choose otherwise."""

    def perform(run: SplitCase) -> Result:
        calls.append(run)
        val = 1 - abs(run.parameters.get("lr", 0.01) - 0.005)
        return Result("lignn", run.number, 1 - val, val, 1.0, 1, ())

    return perform


def test_the_space_is_declared_and_what_is_given_is_not_searched() -> None:
    assert set(tune.SPACE) == {name for name, one in PARAMETERS.items() if one.search}
    assert "hidden" not in tune.space({"hidden": 7})
    assert {"hidden", "dropout", "lr", "weight_decay"} <= set(tune.space({"method": "backbone"}))
    assert "mask_rate" not in tune.space({"method": "backbone"})
    assert "hidden" not in tune.space({"method": "eignn"})
    for method in ("lpa", "logistic"):
        with pytest.raises(ConfigError, match=f"{method} has nothing to train"):
            tune.space({"method": method})


def test_trials_are_within_the_space_and_the_choice_is_by_validation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[SplitCase] = []
    monkeypatch.setattr(compare, "perform", scored(calls))
    found = tune.tune(KARATE, {"seed": 3}, trials=9, runs=2)
    assert len(found.trials) == 9
    assert found.preset.settings == {}
    whole_ones = [trial for trial in found.trials if trial.runs == 2]
    assert [trial.val for trial in whole_ones] == sorted((t.val for t in whole_ones), reverse=True)
    assert len(whole_ones) < 9  # the others were pruned
    assert found.trials[0].test == min(trial.test for trial in whole_ones)
    for trial in found.trials:
        for name, value in trial.settings.items():
            wanted = tune.SPACE[name]
            inside = wanted.low <= value <= wanted.high if isinstance(wanted, Range) else value in wanted
            assert inside, (name, value)
    assert {run.parameters["seed"] for run in calls} == {3, 4}


def test_what_mattered_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "perform", scored([]))
    found = tune.tune(KARATE, {"mask_rate": 0.5, "feature_mask": 0.0}, trials=25, runs=1)
    assert max(found.importance, key=found.importance.__getitem__) == "lr"
    assert found.importance["lr"] > 0.6


def test_the_same_seed_gives_the_same_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "perform", scored([]))
    one, two, other = (tune.tune(KARATE, {"seed": seed}, trials=5, runs=2) for seed in (1, 1, 2))
    assert one == two
    assert one.trials != other.trials


def test_a_search_goes_on_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[SplitCase] = []
    monkeypatch.setattr(compare, "perform", scored(calls))
    file = tmp_path / "journal"
    first = tune.tune(KARATE, {}, trials=5, runs=1, storage=file)
    calls.clear()
    assert tune.tune(KARATE, {}, trials=5, runs=1, storage=file) == first
    assert calls == []
    more = tune.tune(KARATE, {}, trials=7, runs=1, storage=file)
    assert len(calls) == 2
    assert set(map(repr, first.trials)) < set(map(repr, more.trials))
    with pytest.raises(InputError, match="the results of another search; delete it, or give another --storage"):
        tune.tune(KARATE, {"hidden": 4}, trials=7, runs=1, storage=file)


def test_an_interrupted_search_tries_again_what_was_under_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[SplitCase] = []
    perform = scored(calls)

    def interrupted(run: SplitCase) -> Result:
        if len(calls) == 3:
            raise KeyboardInterrupt
        return perform(run)

    monkeypatch.setattr(compare, "perform", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune.tune(KARATE, {}, trials=5, runs=1, storage=tmp_path / "journal")
    monkeypatch.setattr(compare, "perform", perform)
    assert len(tune.tune(KARATE, {}, trials=5, runs=1, storage=tmp_path / "journal").trials) == 5


@pytest.mark.parametrize(("in_time", "trials"), [(3, 1), (4, 1), (11, 5)])
def test_a_time_that_is_over_keeps_what_was_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_time: int, trials: int
) -> None:
    """The preset has 2 runs; 4 trials at once have at most 8, fewer if some are pruned after the first split."""
    perform, file = scored([]), tmp_path / "journal"

    def some(_: Any, rounds: Any, *__: Any) -> Iterator[Any]:
        yield from ((run, perform(run)) for run in islice((run for runs in rounds for run in runs), in_time))

    monkeypatch.setattr(workers, "in_rounds", some)
    monkeypatch.setattr(compare, "perform", perform)
    found = tune.tune(KARATE, {}, trials=9, runs=2, timeout=1000, storage=file)
    assert len(found.trials) == trials
    assert len(tune.tune(KARATE, {}, trials=9, runs=2, storage=file).trials) == 9
    monkeypatch.setattr(workers, "in_rounds", lambda *_: (each for each in ()))
    with pytest.raises(InputError, match="--timeout: the time was over before the settings of the preset were tried"):
        tune.tune(KARATE, {}, trials=9, runs=2, timeout=1000)


def test_optuna_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"lignn tune needs Optuna; pip install 'lignn\[tune\]'"):
        tune.tune(KARATE, {}, trials=2, runs=1)


def test_test_labels_choose_nothing(tmp_path: Path) -> None:
    split, graph = splits(False), whole().replace(node_ids=None)
    found = []
    for number, version in enumerate((graph, flipped(graph, split.test))):
        file = tmp_path / f"{number}.npz"
        version.replace(splits=(split,)).write(file)
        assert isinstance(version, Graph)
        parameters = {"method": "label_input", "max_epochs": 2, "hidden": 4}
        found.append(tune.tune(Source(str(file)), parameters, trials=4, runs=1))
    one, other = ([(trial.settings, trial.val) for trial in each.trials] for each in found)
    assert one == other
    assert found[0].importance == found[1].importance
