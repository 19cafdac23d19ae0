import pytest

from lignn.bench.timing import Timing, compare, interleaved


class Clock:
    """A clock that only moves when a side says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def side(self, seconds):
        def run():
            self.now += seconds

        return run


def test_each_side_is_timed_once_a_round_by_itself():
    clock = Clock()
    timings = interleaved({"slow": clock.side(3.0), "quick": clock.side(1.0)}, rounds=5, clock=clock)
    assert timings["slow"].seconds == (3.0,) * 5
    assert timings["quick"].seconds == (1.0,) * 5
    assert clock.now == 6 * 4.0  # one more call of each, not counted


def test_rounds_begin_with_another_side_each_time():
    calls = []
    sides = {name: lambda name=name: calls.append(name) for name in "abc"}
    interleaved(sides, rounds=3)
    assert "".join(calls) == "abc" + "abc" + "bca" + "cab"


def test_ratio_does_not_see_what_disturbs_whole_rounds():
    reference = Timing((1.0, 10.0, 1.0, 100.0))
    assert Timing((2.0, 20.0, 2.0, 200.0)).ratio(reference) == 2.0


def test_median_and_spread():
    timing = Timing((1.0, 2.0, 3.0, 4.0, 100.0))
    assert timing.median == 3.0
    assert timing.spread == pytest.approx(2 / 3)


def test_one_round_has_no_spread():
    with pytest.raises(ValueError, match="at least 2 rounds, not 1"):
        interleaved({"a": lambda: None}, rounds=1)


def test_records_name_the_case_and_compare_with_the_first_side():
    first, second = compare("case", {"lignn": lambda: None, "other": lambda: sum(range(20000))}, 5, {"columns": 3})
    assert (first["side"], first["ratio"]) == ("lignn", 1.0)
    assert second["ratio"] > 5
    assert second["config"] == {"columns": 3, "rounds": 5}
    assert {"lignn", "torch", "numba", "threads"} <= second["versions"].keys()
