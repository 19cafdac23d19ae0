"""Records of runs that were done again beside the older ones."""

import pytest

from lignn.studies.results import compared


def record(number, score, row="LI-GCN", dataset="chameleon", **changes):
    return {
        "id": f"{row}/{dataset}/{number}", "row": row, "dataset": dataset, "seed": number, "status": "ok",
        "scores": {"test": score},
    } | changes  # fmt: skip


def test_the_same_runs_are_compared_in_pairs():
    old = [record(0, 0.5), record(1, 0.6), record(2, 0.7), record(0, 0.3, "GCN")]
    new = [record(0, 0.5), record(1, 0.61), record(3, 0.1)]
    (row,) = compared(new, old)
    assert (row["cell"], row["runs"], row["equal"]) == ("LI-GCN / chameleon", 2, 1)
    assert (row["new"], row["old"], row["difference"]) == pytest.approx((55.5, 55.0, 0.5))
    assert row["low"] < 0 < row["high"]


def test_several_cells_have_a_row_for_all():
    old = [record(0, 0.5), record(0, 0.3, "GCN")]
    rows = compared([record(0, 0.6), record(0, 0.2, "GCN")], old)
    assert [row["cell"] for row in rows] == ["LI-GCN / chameleon", "GCN / chameleon", "all"]
    assert rows[-1]["difference"] == pytest.approx(0.0)


def test_runs_of_another_config_or_without_a_score_are_left_out():
    (row,) = compared([record(0, 0.5), record(1, 0.5)], [record(0, 0.5, id="other"), record(1, 0.5, status="failed")])
    assert row == {"cell": "LI-GCN / chameleon", "runs": 0, "equal": 0}
