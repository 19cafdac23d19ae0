from lignn.experiments import search
from tests.experiments import tiny


def run(rate: float, seed: int, val: float) -> dict:
    config = {"backbone": {"name": "gcn"}, "method": {"name": "lignn", "mask_rate": rate, "forward_mask": False}}
    config["method"]["forward_mask"] = rate > 0.5
    return tiny.record("LI-GCN", seed, 0.5, config=config, scores={"val": val, "test": 1 - val})


RUNS = [run(0.25, 0, 0.5), run(0.25, 1, 0.6), run(0.75, 0, 0.4), run(0.75, 1, 0.65)]


def test_the_best_mean_validation_score_chooses():
    groups = search.candidates(RUNS)
    assert [settings for settings, _ in groups] == [
        {"mask_rate": 0.25, "forward_mask": False},
        {"mask_rate": 0.75, "forward_mask": True},
    ]
    assert [len(records) for _, records in groups] == [2, 2]


def test_line_beside_the_papers_choice():
    (table,) = search.view("table3", RUNS, ["LI-GCN"], ["chameleon", "squirrel"])
    assert table.rows == [
        (
            "chameleon, LI-GCN",
            "2",
            "mask_rate 0.25, forward_mask False",
            "55.00 ± 7.07",
            "45.00 ± 7.07 (2)",
            "forward_mask False, mask_rate 0.25",
            "55.00 ± 7.07",
            "45.00 ± 7.07 (2)",
        )
    ]
    assert search.view("table3", [], ["LI-GCN"], ["chameleon"]) == ["not run"]
