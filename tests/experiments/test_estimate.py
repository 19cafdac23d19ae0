import pytest

from lignn.experiments import estimate
from tests.experiments import tiny

PLANNED = tiny.STUDY.plan(2)


def done(row: str, seconds: float, **changes: object) -> dict:
    return tiny.record(row, 0, 0.5, **({"study": "tiny", "dataset": "chains-10", "seconds": seconds} | changes))


def test_the_closest_records_tell_the_time():
    known = [done("GCN", 2.0), done("GCN", 4.0), done("LI-GCN (β 0.5)", 10.0)]
    assert estimate.seconds_left(PLANNED, known, jobs=2) == pytest.approx((3 + 10 + 3 + 10) / 2)


def test_other_studies_tell_if_this_one_cannot():
    known = [done("x", 2.0, study="other", method="backbone"), done("y", 6.0, study="other", method="lignn")]
    assert estimate.seconds_left(PLANNED, known, jobs=1) == pytest.approx(2 * (2 + 6))


def test_without_a_similar_run_the_time_is_unknown():
    assert estimate.seconds_left(PLANNED, [done("GCN", 2.0, dataset="karate")], jobs=1) is None
    assert estimate.seconds_left(PLANNED, [done("GCN", 2.0, status="failed")], jobs=1) is None
    assert estimate.seconds_left([], [], jobs=1) == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "unknown"), (0.0, "0 s"), (0.32, "0.3 s"), (12.3, "12 s"), (200.0, "3 min"), (7500.0, "2 h 5 min")],
)
def test_spoken(seconds, text):
    assert estimate.spoken(seconds) == text
