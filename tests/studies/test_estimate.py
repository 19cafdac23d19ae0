from lignn.studies import estimate
from lignn.studies.estimate import Estimate
from tests.studies import tiny

PLANNED = tiny.STUDY.plan(2)


def done(row: str, seconds: float, **changes: object) -> dict:
    return tiny.record(row, 0, 0.5, **({"study": "tiny", "dataset": "chains-10", "seconds": seconds} | changes))


def test_the_closest_records_tell_the_time():
    known = [done("GCN", 2.0), done("GCN", 4.0), done("LI-GCN (β 0.5)", 10.0)]
    assert estimate.time_left(PLANNED, known, jobs=2) == Estimate((3 + 10 + 3 + 10) / 2, 0)


def test_other_studies_tell_if_this_one_cannot():
    known = [done("x", 2.0, study="other", method="backbone"), done("y", 6.0, study="other", method="lignn")]
    assert estimate.time_left(PLANNED, known, jobs=1) == Estimate(2 * (2 + 6), 0)


def test_other_datasets_tell_by_their_median_if_this_one_cannot():
    known = [
        done("x", seconds, dataset=dataset, method=method)
        for method, times in {"backbone": (1.0, 2.0, 90.0), "lignn": (5.0, 6.0, 900.0)}.items()
        for seconds, dataset in zip(times, ("cora", "citeseer", "pubmed"), strict=True)
    ]
    assert estimate.time_left(PLANNED, known, jobs=1) == Estimate(2 * (2 + 6), 0)


def test_runs_without_a_similar_one_are_counted():
    part = estimate.time_left(PLANNED, [done("GCN", 2.0, dataset="karate", method="backbone")], jobs=1)
    assert (part, str(part)) == (Estimate(4.0, 2), "at least 4.0 s (2 runs without a similar record)")
    nothing = estimate.time_left(PLANNED, [done("GCN", 2.0, status="failed"), {"id": "foreign"}], jobs=1)
    assert (nothing, str(nothing)) == (Estimate(None, 4), "unknown (4 runs without a similar record)")
    assert estimate.time_left([], [], jobs=1) == Estimate(0, 0)
