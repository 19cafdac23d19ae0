"""The views of the report, on records with known numbers."""

import pytest

from lignn.evaluation.page import Table
from lignn.studies import study
from lignn.studies.results import Results
from lignn.studies.views import accuracy, changes, contraction, curves, lengths, rare, settings, transitions
from tests.studies import tiny


def cells(blocks: list) -> dict[str, list[str]]:
    """Rows of all tables by their first cell; the first table wins."""
    found: dict[str, list[str]] = {}
    for table in (block for block in blocks if isinstance(block, Table)):
        for first, *others in table.rows:
            found.setdefault(first, others)
    return found


def texts(blocks: list) -> list[str]:
    return [block for block in blocks if isinstance(block, str)]


def course(values: list[float], test: float = 0.5) -> curves.Course:
    return curves.Course.of(tiny.record("LI-GCN", 0, test, curve=values), 14.0)


RISE = [0.14 + 0.004 * i for i in range(100)]


def test_a_dip_at_the_end_is_no_collapse():
    rising = course([*RISE, 0.3])
    assert (rising.highest_epoch, rising.lowest) == (100, pytest.approx(30.0))
    assert not rising.collapses


def test_a_fall_from_which_it_recovers_is_a_collapse():
    fallen = course([*RISE, *[0.2] * 60, 0.6])
    assert (fallen.top, fallen.bottom) == pytest.approx((53.6, 20.0), abs=0.1)
    assert fallen.highest == pytest.approx(60.0)
    assert fallen.lost == pytest.approx(33.6 / 39.6, abs=0.01)
    assert fallen.collapses


def test_a_short_dip_is_no_collapse():
    assert not course([*RISE, *[0.2] * 10, *[0.5] * 60]).collapses


def test_a_slow_loss_is_a_collapse_once_it_exceeds_a_third():
    def after(level: float) -> curves.Course:
        return course([*[0.44] * 10, *[level] * 50])

    assert not after(0.35).collapses
    assert after(0.33).collapses


def test_noise_at_chance_is_no_collapse():
    noise = course([0.16, *[0.11] * 100], test=0.15)
    assert noise.at_chance(14.0)
    assert not noise.collapses


def test_curves():
    runs = [
        tiny.record("LI-GCN", 0, 0.5, dataset="weekday", curve=RISE),
        tiny.record("Label Reuse (k 1)", 0, 0.3, dataset="weekday", curve=[*RISE[:60], *[0.16] * 60]),
        tiny.record("Label Reuse (k 3)", 0, 0.3, dataset="weekday", curve=RISE[:90]),
        tiny.record("GAT (2 heads)", 0, 0.15, dataset="weekday", curve=[0.14, 0.14, 0.15, 0.15]),
    ]
    blocks = curves.view(Results.of("figure3", runs, None))
    assert texts(blocks)[:4] == [
        "Mean of the last 50 epochs: LI-GCN is at the top with 43.80 %, then Label Reuse (k 3) with 39.80 %.",
        "LI-GCN: does not collapse; highest → last 50 epochs: 53.60 → 43.80 %.",
        "Label Reuse: 1 of 2 variants collapse (Label Reuse (k 1): 37.60 → 16.00 %).",
        "GAT: no better than a random guess (14.29 %), at most 15.00 %.",
    ]
    found = cells(blocks)["Label Reuse (k 1)"]
    assert found == ["30.00 (3)", "37.60 (60)", "16.00", "16.00", "37.60 → 16.00", "93 %, collapses", "120"]


def grid(dataset: str, seed: int, forward: list[float | None], backward: list[float | None]) -> list[dict]:
    """One run's records over the mask rates 0.1, 0.2, …"""
    runs = []
    for number, measured in enumerate(zip(forward, backward, strict=True), 1):
        solves = {
            solve: {"contraction_at_best": value}
            for solve, value in zip(("forward", "backward"), measured, strict=True)
        }
        config = {"method": {"name": "lignn", "mask_rate": number / 10}, "backbone": {}}
        changes = {"dataset": dataset, "solves": solves, "config": config, "best_epoch": 100 - 10 * number}
        runs.append(tiny.record(f"β {number / 10}", seed, 0.5, **changes))
    return runs


def test_contraction_and_its_rank_correlation():
    falling = [1.0 - 0.1 * i for i in range(9)]
    runs = grid("cora", 0, falling, falling[::-1])
    runs += grid("cora", 1, [2 * value for value in falling[:-1]] + [0.0], [None, *falling[:0:-1]])
    runs += grid("cora", 2, falling[:2], falling[:2]) + grid("pubmed", 0, falling[:3], falling[:3])
    blocks = contraction.view(Results.of("figure2", runs, None))
    forward, pubmed, backward, _ = next(block for block in blocks if isinstance(block, Table)).rows
    # the second run's K̂(0.9) is 0, not measurable: its rank correlation is that of eight values, and it has no pair
    assert forward[:2] == ("cora", "forward")
    assert forward[2:] == ("2", "-1.00 (-1.00 … -1.00)", "1.33 ± 0.58", "0.20", "-0.80 (1)", "1 of 20", "90 → 10")
    assert backward[2:] == (
        "2",
        "+1.00 (+1.00 … +1.00)",
        "0.60 ± 0.57",
        "0.95 ± 0.07",
        "+0.80 (1)",
        "1 of 20",
        "90 → 10",
    )
    assert pubmed[2:4] == ("0", "incomplete (3 of 9 mask rates)")
    assert texts(blocks)[0] == (
        "Forward solve: the mean rank correlation of K̂ with β is negative on 1 of 1 lines with complete runs, "
        "and K̂(0.9) < K̂(0.1) on 1 of 1 where both were measured. Incomplete: pubmed."
    )
    assert "negative on 0 of 1 lines with complete runs (not on cora)" in texts(blocks)[1]


def test_contraction_in_several_settings_has_the_grid_that_its_study_plans():
    def early(rate: float, value: float) -> dict:
        solves = {solve: {"contraction_at_best": value} for solve in ("forward", "backward")}
        row = f"after 30 epochs (β = {rate})"
        return tiny.planned("wellposed", row, 0, 0.5, "cora", solves=solves, best_epoch=29)

    runs = [early(rate, value) for rate, value in ((0.1, 0.2), (0.3, 0.3), (0.5, 0.5), (0.7, 0.6), (0.9, 0.9))]
    blocks = contraction.view(Results.of("wellposed", runs, study.load("wellposed")))
    forward, _ = next(block for block in blocks if isinstance(block, Table)).rows
    assert forward[:3] == ("cora, after 30 epochs", "forward", "1")
    assert forward[3:] == ("+1.00", "0.20", "0.90", "+0.70 (1)", "0 of 5", "29 → 29")
    assert texts(blocks)[0].endswith(
        "Incomplete: pubmed, after 30 epochs; cora, after 200 epochs; pubmed, after 200 epochs."
    )


def chains(row: str, length: int, *values: float, method: str = "lignn") -> list[dict]:
    dataset = f"chains-{length}"
    return [tiny.record(row, seed, value, dataset=dataset, method=method) for seed, value in enumerate(values)]


def test_lengths_are_averaged_where_both_have_them():
    runs = chains("MLP", 10, 0.5, 0.52, method="backbone") + chains("MLP", 20, 0.2, 0.24, method="backbone")
    runs += chains("SGC (2)", 20, 0.9, method="backbone") + chains("SGC (2)", 30, 0.1, method="backbone")
    runs += chains("IGNN*", 30, 0.9, method="ignn")
    runs += chains("C&S (1)", 10, 0.4, 0.4) + chains("C&S (1)", 20, 0.4, 0.4) + chains("C&S (1)", 40, 0.2)
    runs += chains("LI-GCN", 10, 0.9, 0.9, 0.9) + chains("LI-GCN", 20, 0.7, 0.72) + chains("LI-GCN", 40, 0.8)
    blocks = lengths.view(Results.of("figure4", runs, None))
    by_length, averages = (block for block in blocks if isinstance(block, Table))
    assert ("SGC (2)", "not run", "90.00 (1)", "10.00 (1)", "not run") in by_length.rows
    found = {first: others for first, *others in averages.rows}
    # pairs: 80 − 35 and 81 − 38
    assert found["MLP"][:3] == ["10, 20", "36.50 ± 2.12", "80.50 ± 0.71"]
    assert found["MLP"][3].startswith("+44.00 [+31.29, +56.71]")
    # one seed has all three lengths, two have two of them
    assert found["C&S (1)"][3].split("\n") == ["+46.67 (1)", "over 10, 20: +40.50 [+34.15, +46.85], p 0.008 (2)"]
    assert found["SGC (2)"] == ["20", "90.00", "70.00", "-20.00 (1)"]
    assert found["IGNN*"] == ["none", "", "", ""]
    assert found["LI-GCN"] == ["10, 20, 40", "80.00", "80.00", ""]
    assert texts(blocks) == [
        "LI-GCN, averaged over the lengths that both have: above MLP, C&S (1) (one seed); below SGC (2) (one seed); "
        "nothing in common with IGNN*."
    ]


def test_what_changes_gain_and_cost():
    def timed(row: str, seed: int, score: float, seconds: float, epochs: int) -> dict:
        against = None if row == "LI-GCN" else "LI-GCN"
        return tiny.record(row, seed, score, against=against, processor_seconds=seconds, epochs=epochs)

    runs = [timed("LI-GCN", seed, 0.4, 2.0, 100) for seed in range(3)]
    # the first run has loaded the dataset; the last has no partner
    runs += [timed("Anderson", 0, 0.41, 20.0, 100), timed("Anderson", 1, 0.42, 4.0, 100)]
    runs += [timed("Anderson", 2, 0.42, 3.0, 50), timed("Anderson", 3, 0.9, 99.0, 100)]
    old = timed("LaE", 0, 0.4, 1.0, 100)
    del old["processor_seconds"]
    blocks = changes.view(Results.of("ablation", [*runs, old], None))
    found = cells(blocks)
    assert texts(blocks) == [
        "On chameleon, by the 95 % interval of the difference in points, better: Anderson (+1.67); "
        "a single pair, undecided: LaE (+0.00)."
    ]
    assert found["LI-GCN"] == ["chameleon", "3", "40.00 ± 0.00", "", "2.0", "0.020", "", ""]
    assert found["Anderson"][:2] == ["chameleon", "4"]
    assert found["Anderson"][3] == "+1.67 [+0.23, +3.10], p 0.038 (3)\nover LI-GCN"
    assert found["Anderson"][6:] == ["2.00", "3.00"]
    assert found["LaE"] == ["chameleon", "1", "40.00", "+0.00 (1)\nover LI-GCN", "", "", "", ""]


def test_solves_of_predictions():
    def run(seed: int, steps: int, contraction: float | None, **ends: int) -> dict:
        evaluation = {"status": ends, "steps_at_best": steps, "contraction_at_best": contraction}
        return tiny.record("LI-GCN", seed, 0.4, solves={"evaluation": evaluation})

    runs = [tiny.record("GCN", 0, 0.4), run(0, 5, 0.5, converged=3), run(1, 8, 0.7, diverging=1), run(2, 2, None)]
    *_, table = changes.view(Results.of("ablation", runs, None))
    assert table.caption.startswith("Solves of predictions")
    assert table.rows == [("LI-GCN", "chameleon", "6.5", "0.60", "75")]
    assert not any(
        block.caption.startswith("Solves") for block in changes.view(Results.of("ablation", runs[:1], None))[1:]
    )


def test_a_study_says_which_rows_were_not_run():
    runs = [tiny.planned("findings", "GCN", 0, 0.9, "coauthor_physics")]
    found = Results.of("findings", runs, study.load("findings"), {"chameleon"})
    said = texts(changes.view(found))[0]
    assert said.startswith(
        "Not run: chameleon: all 4 rows (not run: data not available here); coauthor_physics: LI-GCN,"
    )


def test_published_gains_are_judged_by_the_interval():
    def runs(row: str, *scores: float) -> list[dict]:
        return [tiny.record(row, seed, score) for seed, score in enumerate(scores)]

    records = runs("GCN", 0.40, 0.42, 0.44) + runs("LI-GCN", 0.40, 0.421, 0.439) + runs("L-GCN", 0.43, 0.45, 0.48)
    records += runs("GCN + C&S", 0.5, 0.3, 0.44) + runs("L-GCN (α input)", 0.40, 0.421, 0.439)
    blocks = accuracy.view(Results.of("table2", records, None))
    # of another reading: beside the number of the published row, and in no list
    assert cells(blocks)["L-GCN (α input)"] == ["42.00 ± 1.95 (3)\npaper's L-GCN: 42.46 ± 3.90"]
    gains = next(block for block in blocks if isinstance(block, Table) and block.caption.startswith("Gains")).rows
    assert gains[0] == ("LI-GCN − GCN", "+0.00 [-0.25, +0.25], p 1.000 (3) ‡\npaper +2.90")
    assert gains[3][1].endswith("‡\npaper's L-GCN: +3.18")
    best, shown, missed, left_open = texts(blocks)
    assert best == (
        "Of 1 pairs of backbone and graph, LI-GNN has the highest mean of all label methods, over the runs that "
        "all have, in 0; in the paper in 0 of the same."
    )
    assert shown.endswith("(the interval lies above 0): L-GCN on chameleon (+3.33, paper +3.18).")
    assert missed.endswith("which reaches 0): LI-GCN on chameleon (+0.00, paper +2.90).")
    assert left_open.endswith("the paper's gain): GCN + C&S on chameleon (-0.67, paper +1.76).")


def test_classes_have_their_names_where_these_are_short():
    matrix = [[0.9, 0.1], [0.4, 0.6]]
    runs = [
        tiny.record("label transitions", 0, 0.0, dataset=dataset, transitions=matrix, class_names=names)
        for dataset, names in {"a": None, "b": ["AI", "Agents"], "c": ["AI", "Reinforcement_Learning"]}.items()
    ]
    picture, numbered, _ = transitions.view(Results.of("figure1", runs, None))
    assert numbered == "Classes of c: 0 AI, 1 Reinforcement_Learning."
    ticks = [[tick.get_text() for tick in axes.get_yticklabels()] for axes in picture.figure.axes[:3]]
    assert ticks == [["0", "1"], ["AI", "Agents"], ["0", "1"]]


def test_settings_have_differences_to_the_first_one():
    def record(row: str, run: int, score: float, seconds: float) -> dict:
        values = {
            "fit_seconds": seconds,
            "calibration_error": 0.1 * score,
            "K": 0.25,
            "differing": 0.5,
            "lipschitz": 2.0,
        }
        return tiny.record(row, run, score, dataset="karate", **values)

    found = [record("new", 0, 0.5, 2.0), record("new", 1, 0.7, 2.0), record("other", 1, 0.6, 3.0)]
    blocks = settings.view(Results.of("mine", found, None))
    scores, costs, errors, starts = (block for block in blocks if isinstance(block, Table))
    assert scores.rows == [["new", "60.00 ± 14.14 (2)", ""], ["other", "60.00 (1)\n-10.00", "-10.00"]]
    assert costs.rows == [["new", "2.0", "1.00"], ["other", "3.0", "1.50"]]
    assert errors.rows == [["new", "0.060"], ["other", "0.060"]]
    assert starts.rows[1] == ["other", "50.00 %\nK̂ 0.25, proved 0 of 1"]
    assert texts(blocks) == ["0 of 0 proved models give every node the same label from all starts; K̂ ≤ 0.00."]


def test_a_rare_class_is_counted_beside_its_base_rate():
    classes = {"there": [90, 10], "predicted": [85, 15], "right": [84, 9]}
    records = [tiny.record("GCN", 0, 0.93, nodes=100, classes=classes) | {"scores": {"average_precision": 0.8}}]
    (table,) = rare.view(Results.of("mine", records, None))
    assert table.rows == [("GCN", "chameleon", "80.00", "8.00", "9.0 of 10", "15.0", "0.9300")]
