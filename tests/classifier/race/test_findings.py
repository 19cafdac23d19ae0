"""What `auto` says of a graph, for searches whose predictions are known."""

import pytest
import torch

from lignn import Graph, Split
from lignn.classifier.race import greedy
from lignn.classifier.race.candidates import PARTS, Candidate
from lignn.classifier.race.findings import majority, sentences
from lignn.classifier.race.fold_fits import Outcome, Setup, Task
from lignn.classifier.race.folds import Fold
from lignn.classifier.race.judge import Gap, Judge, error_of, gap
from lignn.classifier.race.leaderboard import Leaderboard, leaderboard
from lignn.classifier.race.search import Search
from lignn.evaluation import auto_page, page
from lignn.training import Metric

N = 200
USES = {"rows": ("features",), "network": ("features", "edges"), "inputs": PARTS, "spread": ("labels",), "table": PARTS}


def search(right: dict[str, int], shifted: str = "", metric: str = "f1_micro") -> Search:
    """A search on one fold of two classes, in which each candidate is right at so many nodes.

    These are the first nodes; for the candidate `shifted`, the last ones.
    """
    y = (torch.arange(2 * N) % 5 < 2).long()
    scored = torch.arange(2 * N) < N
    fold = Fold(Split(~scored, torch.zeros_like(scored), scored), scored)
    networks = ("network", "inputs")
    names = tuple(
        Candidate(name, name.upper(), "lpa", USES[name], "gcn" if name in networks else None) for name in right
    )
    graph = Graph([[0], [1]], y=y, num_nodes=2 * N)
    results = {}
    for number, (name, count) in enumerate(right.items()):
        hit = torch.arange(N) >= N - count if name == shifted else torch.arange(N) < count
        labels = torch.where(hit, y[:N], 1 - y[:N])
        results[Task(number, 0)] = Outcome(torch.nn.functional.one_hot(labels, 2).float(), 1.0, 2.0)
    setup = Setup(graph, (fold,), names, {"calibrate": False}, Metric(metric))
    return Search(setup, results=results, alive=list(range(len(names))), reached=1)


def told(right: dict[str, int], shifted: str = "") -> str:
    found = search(right, shifted)
    return "\n".join(sentences(found, Judge.of(found.setup)))


@pytest.mark.parametrize(
    ("right", "shifted", "words"),
    [
        ({"rows": 100, "network": 180}, "", "The graph helps: NETWORK is +40.00"),
        ({"rows": 180, "network": 180}, "", "A model without the graph is as good: your edges do not help"),
        ({"rows": 180, "network": 100}, "", "The graph does harm: ROWS, which uses features alone, is above NETWORK"),
        ({"rows": 120, "network": 124}, "rows", "Whether your edges help is not clear: more labels would tell"),
        ({"rows": 90, "network": 150, "inputs": 190}, "", "Neighbours' labels help as inputs"),
        ({"rows": 90, "network": 180, "inputs": 180}, "", "Neighbours' features matter, their labels do not"),
        ({"rows": 180, "network": 180, "inputs": 180}, "", "Neighbours' labels do not help as inputs"),
        ({"network": 120, "inputs": 124}, "inputs", "Whether neighbours' labels help as inputs is not clear"),
        ({"network": 180, "spread": 100}, "", "Features help (NETWORK against SPREAD: +40.00"),
        ({"network": 180, "spread": 180}, "", "Edges and labels alone are as good: features do not help"),
        ({"network": 124, "spread": 120}, "spread", "Whether features help is not clear"),
        ({"network": 190}, "", "NETWORK is +35.00"),
        ({"network": 122}, "", "Nothing is clearly better than always answering the most frequent label"),
    ],
)
def test_words(right: dict[str, int], shifted: str, words: str) -> None:
    assert words in told(right, shifted)


def test_nothing_is_said_of_groups_without_a_candidate() -> None:
    assert len(told({"spread": 190}).splitlines()) == 1
    assert "labels" not in told({"network": 190, "table": 100})  # another kind of model says nothing of labels
    found = search({"rows": 100, "network": 180})
    found.results = {task: one for task, one in found.results.items() if task.candidate == 1}
    found.alive = [1]
    assert "graph" not in "\n".join(sentences(found, Judge.of(found.setup)))


def test_the_most_frequent_label_is_that_of_training() -> None:
    found = search({"network": 180})
    assert torch.equal(majority(found, [0])[0], torch.tensor([1.0, 0.0]).expand(N, -1))
    several = Graph([[0], [1]], y=torch.tensor([[0, 1], [1, 1], [1, 0], [1, 1]], dtype=torch.int8))
    scored = torch.tensor([True, False, False, False])
    fold = Fold(Split(~scored, torch.zeros_like(scored), scored), scored)
    rows = majority(Search(Setup(several, (fold,), (), {}, Metric())), [0])
    torch.testing.assert_close(rows[0], torch.tensor([[1.0, 2 / 3]]))


def test_an_interval_and_an_error_are_those_of_a_share() -> None:
    """180 against 160 of 200, nested: 10 points, and √(0.1 · 0.9 / 200) is 2.1 points."""
    found = search({"network": 160, "inputs": 180})
    judge, (one, other) = Judge.of(found.setup), (found.predictions(number, [0]) for number in (1, 0))
    between = gap(judge, [0], one, other)
    assert between.mean == pytest.approx(10)
    assert between.low == pytest.approx(10 - 1.96 * 2.12, abs=1)
    assert between.high == pytest.approx(10 + 1.96 * 2.12, abs=1)
    assert error_of(judge, [0], other) == pytest.approx(100 * (0.8 * 0.2 / N) ** 0.5, rel=0.25)


def test_a_little_gain_is_little_on_the_scale_of_the_metric() -> None:
    assert Gap(1.0, -0.5, 2.5).none
    assert not Gap(1.0, -0.5, 3.5).none
    assert not Gap(-1.0, -6.0, 4.0).none  # few labels: a gain is not excluded
    assert not Gap(-1.0, None, None).none
    found = search({"network": 180, "inputs": 180}, metric="log_loss")
    found.results = {
        task: Outcome(0.5 + 0.1 * (one.probabilities - 0.5), 1.0, 1.0) for task, one in found.results.items()
    }
    assert gap(Judge.of(found.setup), [0], found.predictions(0, [0]), found.predictions(1, [0])).little == 0.03


def board(**more: int) -> Leaderboard:
    found = search({"rows": 120, "network": 160, "inputs": 180, "spread": 100} | more)
    return leaderboard(found, greedy.Choice({2: 1.0}, 0.9, None), {"quality": "good"})


def test_the_leaderboard_has_scores_errors_times_and_what_is_used() -> None:
    found = board()
    assert [(row.name, row.score, row.weight) for row in found.rows] == [
        ("inputs", 90.0, 1.0),
        ("network", 80.0, 0.0),
        ("rows", 60.0, 0.0),
        ("spread", 50.0, 0.0),
    ]
    assert found.guess == 60
    assert found.headline == "The model is INPUTS"
    header, rows = found.table()
    assert header == ["", "F1-micro (%)", "folds", "s", "uses", "weight"]
    assert rows[0][0] == "INPUTS"
    assert rows[0][1].startswith("90.00 ± ")
    assert rows[0][2:] == ["1", "1.0", "FEL", "100%"]
    assert found.remarks == []


def test_candidates_that_were_not_tried_or_failed_are_told() -> None:
    found = search({"rows": 120, "network": 160, "inputs": 180})
    del found.results[Task(0, 0)]
    found.results[Task(1, 0)] = Outcome(None, 1.0, 1.0, failure="no memory")
    found.alive, found.stopped = [2], True
    remarks = leaderboard(found, greedy.Choice({2: 1.0}, 0.9, None), {"quality": "good"}).remarks
    assert "ROWS: not tried: the time was over." in remarks
    assert "NETWORK: no memory." in remarks
    assert "the time was over before all candidates were tried on all folds." in remarks


def test_a_better_candidate_that_was_too_slow_is_told() -> None:
    found = search({"rows": 120, "network": 160})
    remarks = leaderboard(found, greedy.Choice({0: 1.0}, 0.6, None), {"quality": "good"}).remarks
    assert remarks == ["NETWORK scored higher; too little time was left to fit it again."]


def test_the_page_draws_every_score_with_its_error_and_the_guess() -> None:
    found = board()
    (axes,) = auto_page.draw(found).axes
    scores = [container.lines[0].get_xdata()[0] for container in axes.containers]
    assert scores == [90.0, 80.0, 60.0, 50.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["INPUTS", "NETWORK", "ROWS", "SPREAD"]
    (line,) = (each for each in axes.lines if each.get_linestyle() == ":")
    assert list(line.get_xdata()) == [60, 60]
    colours = [container.lines[0].get_color() for container in axes.containers]
    assert len(set(colours)) == 4  # one for each combination of what a model uses


def test_a_single_row_has_room_in_the_picture() -> None:
    found = search({"network": 180})
    alone = leaderboard(found, greedy.Choice({0: 1.0}, 0.9, None), {"quality": "good"})
    assert page.rendered(auto_page.draw(alone), "svg").startswith(b"<?xml")  # a warning would be an error
