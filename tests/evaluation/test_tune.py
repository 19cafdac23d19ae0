from typing import Any

import pytest

from lignn.classifier import NodeClassifier
from lignn.classifier.settings import Settings
from lignn.datasets.sources import Source
from lignn.errors import ConfigError
from lignn.evaluation import compare, tune
from lignn.evaluation.compare import Result, Run
from lignn.methods import NAMES


def test_the_preset_comes_first_and_nothing_twice() -> None:
    tried = tune.candidates({}, 20, seed=0)
    assert tried[0] == {}
    assert len({tuple(sorted(settings.items())) for settings in tried}) == 20
    assert all(settings[name] in tune.SPACE[name] for settings in tried for name in settings)
    assert tried == tune.candidates({}, 20, seed=0)
    assert tried != tune.candidates({}, 20, seed=1)


def test_what_is_given_is_not_searched() -> None:
    assert all("hidden" not in settings for settings in tune.candidates({"hidden": 7}, 20, seed=0))


def test_a_method_is_tuned_in_what_it_has() -> None:
    assert set(tune.candidates({"method": "backbone"}, 3, seed=0)[1]) == {"hidden", "dropout", "lr"}
    assert set(tune.candidates({"method": "label_input"}, 3, seed=0)[1]) == {"mask_rate", "hidden", "dropout", "lr"}
    assert set(tune.candidates({"method": "eignn"}, 3, seed=0)[1]) == {"dropout", "lr"}
    with pytest.raises(ConfigError, match="lpa has nothing to train"):
        tune.candidates({"method": "lpa"}, 3, seed=0)


def test_a_small_space_gives_fewer_trials() -> None:
    given = {"mask_rate": 0.5, "feature_mask": 0.0, "hidden": 4, "dropout": 0.0}
    assert tune.candidates(given, 12, seed=0) == [{}, {"lr": 0.003}]
    assert tune.candidates({**given, "lr": 0.1}, 12, seed=0) == [{}]


@pytest.mark.parametrize("method", [name for name in NAMES if name != "lpa"])
def test_no_trial_is_the_preset_again(method: str) -> None:
    def resolved(settings: dict[str, Any]) -> str:
        return repr(Settings.of(NodeClassifier(method=method, **settings).get_params(deep=False)).values)

    tried = tune.candidates({"method": method}, 100, seed=0)
    assert len({resolved(settings) for settings in tried}) == len(tried)


def test_the_choice_is_by_validation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Run] = []

    def execute(runs: list[Run], *_: object) -> list[Result]:
        seen.extend(runs)
        val = {0: 0.5, 1: 0.7, 2: 0.9, 3: 0.7, 4: 0.6, 5: 0.6}  # by trials: 0.6, 0.8, 0.6
        return [Result("lignn", r.number, 1 - val[r.number], val[r.number], 1.0, 1, ()) for r in reversed(runs)]

    monkeypatch.setattr(compare, "execute", execute)
    found = tune.tune(Source("karate"), {"seed": 3}, trials=3, runs=2)
    assert [run.parameters["seed"] for run in seen] == [3, 4] * 3
    assert [trial.val for trial in found] == pytest.approx([80, 60, 60])
    assert found[1].settings == {}
    assert found[0].test == pytest.approx(20)
