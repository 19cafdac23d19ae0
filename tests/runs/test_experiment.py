"""The one runner: what has a result is not run again, and rounds see the results of those before them."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from lignn.errors import InputError, LignnError
from lignn.runs import experiment
from lignn.runs.experiment import InMemory
from lignn.runs.workers import Failure


@dataclass(frozen=True)
class Number:
    value: int

    @property
    def id(self) -> str:
        return f"number {self.value}"


def half(case: Number) -> float:
    if case.value == 0:
        raise InputError("zero has no half here")
    if case.value == 1:
        os._exit(7)
    return case.value / 2


def numbers(*values: int) -> list[Number]:
    return [Number(value) for value in values]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_has_a_result_is_not_run_again(jobs: int) -> None:
    results = InMemory()
    found = dict(experiment.run(half, [numbers(4, 5)], results, jobs))
    assert found == {Number(4): 2.0, Number(5): 2.5}
    results.found["number 6"] = "kept"
    assert list(experiment.run(half, [numbers(4, 5, 6, 7)], results, jobs)) == [(Number(7), 3.5)]
    assert results.found == {"number 4": 2.0, "number 5": 2.5, "number 6": "kept", "number 7": 3.5}


def test_a_round_sees_the_results_of_the_round_before() -> None:
    results = InMemory()

    def rounds():  # type: ignore[no-untyped-def]
        yield numbers(8)
        yield numbers(int(results.found["number 8"]))

    assert [case.value for case, _ in experiment.run(half, rounds(), results)] == [8, 4]


def test_a_run_that_is_left_early_goes_on_from_what_it_has() -> None:
    results = InMemory()
    running = experiment.run(half, [numbers(2, 3, 4)], results)
    assert next(running) == (Number(2), 1.0)
    running.close()
    assert [case.value for case, _ in experiment.run(half, [numbers(2, 3, 4)], results)] == [3, 4]


def test_bad_input_is_raised_as_it_is_and_other_failures_with_the_name_of_the_case() -> None:
    with pytest.raises(InputError, match=r"^zero has no half here$"):
        list(experiment.run(half, [numbers(0)], InMemory(), isolated=True))
    with pytest.raises(LignnError, match=r"^number 1: the worker process ended with exit code 7$"):
        list(experiment.run(half, [numbers(1)], InMemory(), isolated=True))


class Everything(InMemory):
    """A store that keeps failures."""

    def add(self, case: experiment.Case, result: object) -> None:
        self.found[case.id] = result


def test_an_isolated_case_that_fails_is_a_result_and_the_others_go_on() -> None:
    found = dict(experiment.run(half, [numbers(0, 1, 2)], Everything(), isolated=True))
    assert found[Number(2)] == 1.0
    assert all(isinstance(found[case], Failure) for case in numbers(0, 1))
