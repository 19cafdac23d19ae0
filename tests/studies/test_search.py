from lignn.studies import study
from lignn.studies.results import Results
from lignn.studies.views import search
from tests.studies import tiny


def run(rate: float, seed: int, val: float) -> dict:
    config = {"backbone": {"name": "gcn"}, "method": {"name": "lignn", "mask_rate": rate, "forward_mask": rate > 0.5}}
    return tiny.record("LI-GCN", seed, 0.5, config=config, scores={"val": val, "test": 1 - val})


RUNS = [run(0.25, 0, 0.5), run(0.25, 1, 0.6), run(0.75, 0, 0.4), run(0.75, 1, 0.65)]


def test_the_best_mean_validation_score_chooses():
    found = search.Search.of(RUNS)
    assert found.chosen.settings == {"mask_rate": 0.25, "forward_mask": False}
    assert (found.planned, found.common) == (2, [0, 1])


def test_candidates_are_compared_on_the_splits_that_all_have():
    # on its third split a candidate is far better, but the other has none
    found = search.Search.of([*RUNS, run(0.75, 2, 1.0)])
    assert found.common == [0, 1]
    assert found.chosen.settings["mask_rate"] == 0.25
    assert search.Search.of([RUNS[0], RUNS[3]]).chosen is None


def test_line_beside_the_papers_choice():
    said, table = search.view(Results.of("table3", RUNS, None))
    assert said == "The validation score chooses what the paper chose in 1 of 1 searches for which it gives a choice."
    assert table.rows == [
        (
            "chameleon, LI-GCN",
            "2 of 2",
            "2",
            "mask_rate 0.25, forward_mask False",
            "55.00 ± 7.07",
            "45.00 ± 7.07",
            "forward_mask False, mask_rate 0.25",
            "55.00 ± 7.07",
            "45.00 ± 7.07",
        )
    ]
    assert search.view(Results.of("table3", [], None)) == ["not run"]


def test_a_part_of_the_grid_still_shows_the_papers_choice():
    table3 = study.load("table3")
    wanted = [{"forward_mask": False, "mask_rate": rate} for rate in (0.25, 0.5)]
    runs = [
        tiny.record("LI-GCN", 0, 0.4 + 0.1 * planned.method["mask_rate"], id=planned.id) | {"config": planned.plain()}
        for planned in table3.plan(1, ["LI-GCN/chameleon"])
        if any(settings.items() <= planned.method.items() for settings in wanted)
    ]
    said, table = search.view(Results.of("table3", runs, table3))
    assert "in 0 of 1 searches" in said
    assert said.endswith("1 of 1 searches have only a part of their grid.")
    # all runs have the same forward_mask, the grid has not
    assert table.rows[0][1:4] == ("2 of 6, partial", "1", "forward_mask False, mask_rate 0.5")
    assert table.rows[0][6:] == ("forward_mask False, mask_rate 0.25", "42.50", "42.50")
