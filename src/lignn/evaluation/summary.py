"""Means, standard deviations, paired differences and durations, as numbers and as text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
"""What identifies a pair of runs, such as their seed."""


@dataclass(frozen=True)
class Difference:
    """Mean difference of paired runs.

    Attributes:
        mean: mean of the differences.
        low, high: 95 % confidence interval of the mean (Student's t); None for a single pair.
        p: p-value of the paired t-test; None for a single pair, or if all differences are equal.
        count: number of pairs.
    """

    mean: float
    low: float | None
    high: float | None
    p: float | None
    count: int

    @property
    def sign(self) -> int | None:
        """1 if the interval lies above 0, -1 if it lies below, 0 if it contains 0; None for a single pair."""
        if self.low is None or self.high is None:
            return None
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    def excludes(self, value: float) -> bool:
        """Return whether `value` lies outside the interval."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high

    @property
    def with_interval(self) -> str:
        """The mean and, if there is one, the interval."""
        return f"{self.mean:+.2f}" + ("" if self.low is None else f" [{self.low:+.2f}, {self.high:+.2f}]")

    def __str__(self) -> str:
        test = "" if self.p is None else f", p {self.p:.3f}" if self.p >= 0.001 else ", p < 0.001"
        return self.with_interval + test


def paired(ours: Mapping[Key, float], base: Mapping[Key, float]) -> Difference | None:
    """Return the difference `ours - base` over the runs that both have; None if they have none in common."""
    differences = [ours[key] - base[key] for key in ours if key in base]
    if not differences:
        return None
    centre, count = mean(differences), len(differences)
    if count == 1:
        return Difference(centre, None, None, None, count)
    if max(differences) - min(differences) < 1e-9:  # equal up to rounding: there is no t-test
        return Difference(centre, centre, centre, None, count)
    from scipy.stats import ttest_1samp

    test = ttest_1samp(differences, 0.0)
    interval = test.confidence_interval(0.95)
    return Difference(centre, float(interval.low), float(interval.high), float(test.pvalue), count)


def deviation(values: Sequence[float]) -> float:
    """Return the sample standard deviation; 0 for a single value."""
    return stdev(values) if len(values) > 1 else 0.0


def mean_and_deviation(values: Iterable[float]) -> str:
    """Return `mean ± sample standard deviation`; for a single value, only the value."""
    numbers = list(values)
    return f"{mean(numbers):.2f}" + (f" ± {stdev(numbers):.2f}" if len(numbers) > 1 else "")


def format_duration(seconds: float | None) -> str:
    """Return a duration in words, such as `2 h 5 min`."""
    if seconds is None:
        return "unknown"
    if 0 < seconds < 9.95:
        return f"{max(seconds, 0.1):.1f} s"
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
