import pytest
from scipy.stats import ttest_rel

from lignn.evaluation import summary


def test_paired_difference_by_hand():
    ours, base = {0: 41.0, 1: 44.0, 2: 46.0, 9: 1.0}, {0: 40.0, 1: 42.0, 2: 44.0, 8: 99.0}
    found = summary.paired(ours, base)
    # differences 1, 2, 2: mean 5/3, standard error 1/3, t quantile of two degrees of freedom 4.3027
    assert found.count == 3
    assert found.mean == pytest.approx(5 / 3)
    assert (found.low, found.high) == pytest.approx((5 / 3 - 4.302653 / 3, 5 / 3 + 4.302653 / 3))
    assert found.p == pytest.approx(ttest_rel([41, 44, 46], [40, 42, 44]).pvalue)
    assert str(found) == "+1.67 [+0.23, +3.10], p 0.038"


def test_differences_without_spread():
    assert summary.paired({0: 1.0}, {1: 1.0}) is None
    assert str(summary.paired({0: 1.5}, {0: 1.0})) == "+0.50"
    assert str(summary.paired({0: 1.5, 1: 2.5}, {0: 1.0, 1: 2.0})) == "+0.50 [+0.50, +0.50]"


def test_what_an_interval_decides():
    def of(*values: float) -> summary.Difference:
        found = summary.paired(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))
        assert found is not None
        return found

    assert [of(*values).sign for values in ((1, 2, 2), (-1, -2, -2), (-1, 1, 0), (1,))] == [1, -1, 0, None]
    assert of(1, 2, 2).excludes(0.2)
    assert not of(1, 2, 2).excludes(0.3)
    assert not of(1).excludes(5.0)


def test_mean_and_sample_deviation():
    assert summary.mean_and_deviation([40.0, 42.0, 44.0]) == "42.00 ± 2.00"
    assert summary.mean_and_deviation([40.0]) == "40.00"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "unknown"), (0.0, "0 s"), (0.32, "0.3 s"), (12.3, "12 s"), (200.0, "3 min"), (7500.0, "2 h 5 min")],
)
def test_spoken(seconds, text):
    assert summary.format_duration(seconds) == text
