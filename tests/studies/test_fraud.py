"""The study of 4 known frauds: its graph, a run on a small one, and what its records say."""

from pathlib import Path
from statistics import mean

import numpy as np

from lignn.runs import records
from lignn.studies import fraud
from lignn.studies.fraud import FRAUD, SETTINGS, Case

SMALL = Case("class_weight='balanced'", 0, {"class_weight": "balanced", "max_epochs": 3}, 300, 40, (60, 4))
RESULTS = Path(__file__).parents[2] / "results" / "fraud"


def test_the_graph_is_as_planted():
    case = fraud.cases(1)[0]
    graph, truth = fraud.draw(case)
    y = graph.y.numpy()
    assert ((y == 0).sum(), (y == 1).sum(), (truth == FRAUD).sum()) == (2806, 4, 204)
    assert (truth[y >= 0] == y[y >= 0]).all()
    frauds = truth == FRAUD
    gap = graph.x.numpy()[frauds].mean(0) - graph.x.numpy()[~frauds].mean(0)
    assert np.abs(gap[:3] - 1.5).max() < 0.4
    assert np.abs(gap[3:]).max() < 0.4
    source, target = graph.edge_index.numpy()
    assert (frauds[source] & frauds[target]).sum() > 1000  # 1224 drawn, some of them twice
    assert len({one.description["id"] for one in fraud.cases()}) == 30


def test_a_run_is_determined_by_its_case():
    first, second = fraud.perform(SMALL), fraud.perform(SMALL)
    assert first == second
    assert (first["frauds"], first["metric"], first["epochs"]) == (36, "f1_macro", 3)
    assert first["base_rate"] == 36 / 236


def test_the_records_reach_five_times_the_base_rate(tmp_path):
    good = [record for record in records.read(RESULTS / "fraud.jsonl") if record["status"] == "ok"]
    ratios = {
        title: [one["average_precision"] / one["base_rate"] for one in good if one["row"] == title]
        for title in SETTINGS
    }
    before, default, balanced = (mean(values) for values in ratios.values())
    assert [len(values) for values in ratios.values()] == [10, 10, 10]
    assert before < 2
    assert default >= 5
    assert balanced >= 5
    fraud.report(tmp_path, good)
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == (RESULTS / "report.md").read_text(encoding="utf-8")
