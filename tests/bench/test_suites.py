"""The suites measure what they say; how their records are read and put into documents."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import lignn
from lignn import bench
from lignn.bench import attention, baselines, command, deep, epoch, fit, latency, limits, scale, timing
from lignn.bench.graphs import power_law
from lignn.bench.sides import Task, load_task
from lignn.cli import main
from lignn.errors import ConfigError, InputError
from lignn.evaluation import peak

DOCUMENT = Path(lignn.__file__).parents[2] / "docs" / "results" / "performance.md"


def record(case="a", side="lignn", median=0.001, ratio=1.0, **more):
    return {"suite": "epoch", "quick": False, "case": case, "side": side, "median": median, "spread": 0.1} | {
        "ratio": ratio,
        "versions": {
            "processor": "abacus",
            "threads": 2,
            "cores": 2,
            "torch": "2",
            "torch_geometric": "2",
            "numba": "0",
        }
        | {"lignn": "0"},
        **more,
    }


RECORDS = [record(peak_mib=30.0), record(side="textbook", median=2.5, ratio=9.5, peak_mib=2048), record("b")]


def test_power_law_problem_can_be_learned_from():
    graph = power_law(20_000)
    assert graph.num_edges / 2 == pytest.approx(20_000, rel=0.2)
    assert graph.num_classes == 10
    assert torch.unique(graph.y[graph.splits[0].train]).numel() == 10
    assert graph.x[graph.y == 3, 3].mean() == pytest.approx(1, abs=0.3)
    assert torch.equal(power_law(20_000).edge_index, graph.edge_index)


@pytest.fixture
def one_process(monkeypatch):
    """Work is done here, and takes one MiB; a test of its own shows what a fresh process does."""
    monkeypatch.setattr(
        peak, "in_fresh_process", lambda prepare, work, *arguments: peak.Measured(work(prepare(*arguments)), 1.0)
    )


def test_epoch_suite_compares_time_and_memory(one_process):
    ours, theirs = epoch.run(quick=True)
    assert (ours["side"], theirs["side"]) == ("lignn", "textbook")
    assert theirs["ratio"] > 1
    assert theirs["peak_mib"] == ours["peak_mib"] == 1.0


def test_fit_suite_stops_both_sides_by_the_same_rule():
    records = list(fit.run(quick=True))
    assert [record["side"] for record in records] == ["lignn", "lignn, cold starts", "textbook"]
    assert all(record["epochs"] == 5 and len(record["runs"]) == 2 for record in records)
    settings = fit.Training(max_epochs=50, patience=2)
    problem = load_task(1000)
    cold, theirs = fit.fit_as_published(problem, 0, settings), fit.fit_textbook(problem, 0, settings)
    assert cold["epochs"] < 50
    assert theirs["epochs"] < 50


def test_scale_suite_counts_edges(one_process):
    records = list(scale.run(quick=True))
    assert [record["side"] for record in records] == ["lignn", "textbook"] * 2
    assert records[0]["edges"] == pytest.approx(1000, rel=0.2)
    assert records[-1]["edges"] == pytest.approx(10_000, rel=0.2)


def test_baselines_compare_like_with_like():
    problem = load_task(1000)
    for contest in (baselines.label_propagation, baselines.correct_and_smooth):
        ours, edges, csr = contest(problem).values()
        torch.testing.assert_close(edges(), csr(), atol=1e-5, rtol=1e-4)
        ours()
    for contest in (baselines.gcn_training, baselines.gat_training):
        for update in contest(problem).values():
            update()


@pytest.mark.parametrize("evaluates", [False, True])
def test_both_sides_of_ignn_learn_the_same(monkeypatch, evaluates):
    methods = []
    make = torch.optim.Adam
    monkeypatch.setattr(torch.optim, "Adam", lambda weights, lr: make(methods.append(list(weights)) or methods[-1], lr))
    for run in baselines.ignn_training(load_task(1000), evaluates).values():
        for _ in range(3):
            run()
    ours, theirs = methods
    for weight, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(weight.detach(), other.detach(), atol=1e-4, rtol=1e-3)


def test_slope_of_a_power():
    assert scale.slope({edges: 3e-6 * edges**1.07 for edges in (10**5, 10**6, 10**7)}) == pytest.approx(1.07)


def _grow(size: int) -> bytearray:
    return bytearray(size)


def _hold(_: bytearray) -> int:
    """Writes to 64 MiB, which makes them resident."""
    return int(np.ones(64 * peak.MIB // 8).sum())


def test_peak_counts_the_work_and_not_the_preparation():
    measured = peak.in_fresh_process(_grow, _hold, 256 * peak.MIB)
    assert measured.value == 64 * peak.MIB // 8
    if measured.peak_mib is not None:
        assert measured.peak_mib == pytest.approx(64, abs=8)


def test_latency_sides_reach_the_same_equilibrium():
    graph = power_law(3000)
    problem = Task(graph, graph.splits[0])
    classifier = lignn.NodeClassifier(max_epochs=3).fit(graph, problem.split)
    warm, cold = latency._warm(problem, classifier, 4), latency._cold(problem, classifier, 4)
    for _ in range(5):
        warm()
        live = cold()
    known = classifier._fitted.prediction.problem.labels
    assert torch.equal(known.mask, live.problem.labels.mask)
    assert known.mask.sum() == problem.split.train.sum() + 5
    torch.testing.assert_close(classifier._fitted.prediction.probabilities, live.probabilities, atol=1e-3, rtol=0)


def test_attention_layers_compute_the_same_gradients():
    ours, theirs = attention.layers(lignn.Adjacency.normalized(power_law(500), "none"), heads=2).values()
    for mine, yours in zip(ours(), theirs(), strict=True):
        torch.testing.assert_close(mine, yours, atol=1e-3, rtol=1e-4)


def test_a_deep_network_is_timed_beside_its_arithmetic():
    arithmetic, *epochs = deep.run(quick=True)
    assert [arithmetic["side"], *(each["side"] for each in epochs)] == [
        "products and dense maps",
        "backbone",
        "label_input",
    ]
    assert arithmetic["config"] == {"layers": 8, "hidden": 64, "rounds": 2}
    assert min(each["median"] for each in (arithmetic, *epochs)) > 0


def test_shares_of_an_epoch_sum_to_one():
    records = list(limits.run(quick=True))
    shares = [each["share"] for each in records if each["case"].startswith("epoch")]
    assert sum(shares) == pytest.approx(1)
    assert min(shares) > -0.01
    assert records[0]["gigabytes_per_second"] > 0.1


def test_table_has_a_row_a_case_and_a_column_a_side():
    header, rows = timing.grid(RECORDS)
    assert header == ["case", "lignn", "textbook"]
    assert rows == [
        ["a", "1.00 ms ± 5 %, 30.0 MiB", "2.50 s ± 5 %, 9.50×, 2.00 GiB"],
        ["b", "1.00 ms ± 5 %", ""],
    ]


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"slope": 1.171}, "grows as edges^1.17"),
        ({"peak_mib": 790.2, "planned_mib": 3010.2}, "790 MiB, 2.94 GiB planned"),
        ({"peak_mib": 2341.6, "planned_mib": None}, "2.29 GiB"),
        (
            {"bytes": 1_170_560, "halo_rows": 29264, "apart": 2.2e-16},
            "1.17 MB exchanged, 29264 halo rows, numbers apart by 2e-16",
        ),
        ({"errors": [], "growth": 0.00236}, "0 errors, memory grows by 0.2 % in the second half"),
    ],
)
def test_other_figures_say_what_they_are(figures, text):
    assert timing.cell({"case": "a", "side": "lignn"} | figures, reference=True) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(123.4, "123 s"), (1.0, "1.00 s"), (0.0123, "12.3 ms"), (4.56e-5, "45.6 µs")]
)
def test_durations_have_three_digits(seconds, text):
    assert timing.duration(seconds) == text


def test_records_survive_both_kinds_of_file(tmp_path):
    for name in ("records.json", "records.jsonl"):
        timing.write(RECORDS, tmp_path / name)
    assert json.loads((tmp_path / "records.json").read_text()) == RECORDS
    assert timing.read(tmp_path) == {"epoch": RECORDS}


def test_quick_records_are_not_reported(tmp_path):
    timing.write([record() | {"quick": True}], tmp_path / "epoch.jsonl")
    with pytest.raises(InputError, match="no records there"):
        timing.read(tmp_path)


def test_a_command_is_measured_beyond_its_imports(monkeypatch):
    calls = []

    def seconds(arguments, threads, kernels):
        calls.append((arguments, threads, kernels))
        return (7.0 if "fit" in arguments else 2.0) + threads + (0 if kernels is None else 10) * ("fit" in arguments)

    monkeypatch.setattr(command, "_processor_seconds", seconds)
    records = list(command.run(quick=True))
    assert [record["side"] for record in records] == ["1 thread", "2 threads", "1 thread, no kernel on disk"]
    assert [record["median"] for record in records] == [5.0, 5.0, 15.0]
    assert {threads for _, threads, _ in calls} == {1, 2}
    assert sum(arguments == command.IMPORTS for arguments, *_ in calls) == len(calls) / 2


def test_processor_seconds_are_those_of_the_child():
    assert command._processor_seconds(["-c", "sum(range(10**6))"], 1, None) > 0


def test_the_document_has_a_place_for_every_suite():
    pages = DOCUMENT.read_text() + (DOCUMENT.parents[1] / "guides" / "scale.md").read_text()
    assert sorted(re.findall(r"<!-- bench (\w+) -->", pages)) == sorted([*bench.SUITES, "soak"])  # make soak


def test_broken_records_are_named(tmp_path):
    goal = {"suite": "epoch", "quick": False, "goal": "faster", "reached": 9.5}  # of lignn 0.2
    for broken in ({}, goal):
        (tmp_path / "epoch.jsonl").write_text(json.dumps(broken))
        with pytest.raises(InputError, match=r"epoch\.jsonl, line 1: not a record of lignn bench; remove the line"):
            timing.read(tmp_path)


def test_run_writes_records(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(epoch, "run", lambda quick: iter([record()]))
    found = bench.run("epoch", quick=True, file=tmp_path / "epoch.jsonl")
    assert found == [record()]
    assert len((tmp_path / "epoch.jsonl").read_text().splitlines()) == 1
    assert "1.00 ms ± 5 %" in capsys.readouterr().out


def test_places_that_cannot_be_written_to_are_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(epoch, "run", lambda quick: pytest.fail("measured"))
    with pytest.raises(InputError, match="there is no folder"):
        bench.run("epoch", file=tmp_path / "nowhere" / "epoch.jsonl")
    with pytest.raises(ConfigError, match="did you mean 'epoch'"):
        bench.run("epohc")


def test_command_line(tmp_path, capsys):
    timing.write(RECORDS, tmp_path / "epoch.jsonl")
    document = tmp_path / "performance.md"
    document.write_text("<!-- bench epoch -->\n<!-- end -->\n")
    for arguments, code in [([str(document)], None), ([str(tmp_path / "none.md")], 2)]:
        with pytest.raises(SystemExit) as end:
            main(["bench", "--report", *arguments, "--records", str(tmp_path)])
        assert end.value.code in (code, code or 0)
    output = capsys.readouterr()
    assert "filled in bench epoch" in output.out
    assert "there is no such document" in output.err
