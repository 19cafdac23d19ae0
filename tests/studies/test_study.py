from collections import Counter

import pytest
import torch

from lignn import Graph, datasets
from lignn.datasets import catalogue
from lignn.errors import ConfigError, InputError
from lignn.studies import graphs, report, run, study
from tests.studies import tiny

CLASSIFIERS = [
    *("auto", "auto_choice", "choice", "contraction", "defaults", "fraud", "labels_added", "more", "policy", "proved")
]
"""Studies of the classifier and its defaults."""
BEYOND = ["many", "minesweeper", "minesweeper_choice", "right", "right_half", "rows", "tables", "typed", *CLASSIFIERS]
"""Studies that are not the paper's."""
PAPERS = ["ablation", "figure1", "figure2", "figure3", "figure4", "findings", "table2", "table3", "wellposed"]
ALL = sorted([*PAPERS, *BEYOND])


def test_names_are_all_there():
    assert study.names() == ALL


@pytest.mark.parametrize("name", ALL)
def test_every_run_of_a_shipped_study_can_be_built(name):
    one = study.load(name)
    assert callable(report.view(one.report))
    built, graph = set(), Graph([[0], [1]], x=torch.zeros(3, 12), y=[0, 1, 2], edge_type=[0], edge_types=["shift-0"])
    for planned in one.plan(1):
        config = planned
        assert config.graph in graphs.OWN or catalogue.find(config.graph)
        key = str((config.backbone, config.method, config.training))
        if config.task == "train" and key not in built:
            built.add(key)
            run.build_method(config, graph, torch.Generator().manual_seed(0))
            run.settings_of(config.training)


@pytest.mark.parametrize(
    ("name", "cells"), [("figure1", 5), ("figure2", 45), ("figure3", 25 + 1), ("figure4", 130 + 30), ("table2", 76)]
)
def test_studies_have_as_many_cells_as_the_paper_describes(name, cells):
    """More than the paper: LI-GCN with another rule of stopping, EIGNN by its other route."""
    assert len({planned.cell for planned in study.load(name).plan(1)}) == cells


def test_all_runs_that_are_not_told_otherwise_have_the_papers_training():
    plans = [planned for name in PAPERS for planned in study.load(name).plan(1) if planned.task == "train"]
    paper = {"lr": 0.01, "weight_decay": 0.0, "max_epochs": 1000, "patience": 100}
    others = {planned.row.partition(" (β")[0] for planned in plans if planned.training != paper}
    assert others == {
        "GCN (epochs from 20 on)",
        "LI-GCN (epochs from 20 on)",
        "LI-GCN (adaptive β, patience 1000)",
        "after 30 epochs",
        "after 200 epochs",
    }


def test_table_2_has_the_hyper_parameters_of_table_4():
    cells = {planned.cell: planned for planned in study.load("table2").plan(1)}
    assert cells["LI-GCN", "chameleon"].method == {
        "name": "lignn",
        "max_steps": 10,
        "forward_mask": False,
        "mask_rate": 0.25,
    }
    physics = cells["LI-SotA", "coauthor_physics"]
    assert physics.backbone == {
        "name": "gcnii",
        "num_layers": 8,
        "alpha": 0.3,
        "theta": 1.5,
        "hidden": 64,
        "dropout": 0.0,
    }
    assert (physics.inductive, physics.split) == (True, {"kind": "paper", "number": 0})
    arxiv = cells["GCN + C&S", "ogbn_arxiv"]
    assert (arxiv.inductive, arxiv.split["kind"], arxiv.backbone["hidden"]) == (False, "public", 256)
    assert (arxiv.method["lambda_c"], arxiv.method["lambda_s"]) == (0.2, 0.2)


def test_table_2_offers_the_other_reading_of_alpha_where_it_differs():
    cells = {planned.cell: planned.method for planned in study.load("table2").plan(1)}
    for row in ("L-GCN", "L-SotA"):
        for dataset in study.load("table2").datasets:
            text = cells[row, dataset]
            other = cells.get((f"{row} (α input)", dataset))
            assert (other is None) == (text["mask_rate"] == 0.5)
            assert other is None or other == text | {"mask_rate": 1 - text["mask_rate"]}


def test_figure_2_goes_through_the_mask_rates():
    plan = study.load("figure2").plan(3)
    rates = Counter(planned.method["mask_rate"] for planned in plan)
    assert rates == {round(0.1 * i, 1): 15 for i in range(1, 10)}
    assert {(p.seed, p.split["number"]) for p in plan} == {(0, 0), (1, 1), (2, 2)}


def test_measuring_a_dataset_is_one_run_however_many_are_asked_for():
    assert len(study.load("figure1").plan(10)) == len(datasets_of("figure1")) == 5


def datasets_of(name: str) -> set[str]:
    assert set(study.load(name).datasets) <= set(datasets.names())
    return set(study.load(name).datasets)


@pytest.mark.parametrize(
    ("only", "cells"),
    [
        (["GCN/chameleon"], 1),
        (["gcn/Chameleon"], 1),
        (["*/chameleon"], 12),
        (["IGNN*"], 6),
        (["squirrel"], 13),
        (["LI-*/chameleon", "GCN/squirrel"], 3),
        (["nothing"], 0),
    ],
)
def test_only(only, cells):
    assert len(study.load("table2").plan(1, only)) == cells


def test_runs_come_number_by_number():
    assert [(p.row, p.seed) for p in tiny.STUDY.plan()] == [
        ("GCN", 0),
        ("LI-GCN (β 0.5)", 0),
        ("GCN", 1),
        ("LI-GCN (β 0.5)", 1),
    ]


def test_tables_are_merged_in_order():
    assert study.merged({"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": 4}, "b": {"z": 5}}) == {
        "a": {"x": 1, "y": 4},
        "b": {"z": 5},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[[case]]", "[[case"), "study wrong: not a TOML file"),
        (('title = "Tiny"', ""), "study wrong: 'title' is missing"),
        (("[base]", "[bass]"), "study wrong: 'bass' is unknown"),
        (('row = "GCN"', ""), "study wrong, case 0: it has no row"),
        (("runs = 2", 'runs = "2"'), "study wrong: runs must be a whole number, got '2'"),
        (('row = "GCN"', 'row = "GCN"\ndatasets = "karate"'), "study wrong, case 0: datasets must be a list"),
        (('row = "GCN"', 'row = "GCN"\nvary = { seed = 1 }'), "study wrong, case 0, vary: seed must be a list, got 1"),
        (('row = "GCN"', 'row = "GCN"\nuse = ["x"]'), "study wrong: case 'GCN' uses 'x', which is not in [shared]"),
    ],
)
def test_a_wrong_file_is_explained(change, message):
    with pytest.raises(ConfigError) as error:
        study.parse("wrong", tiny.TEXT.replace(*change, 1))
    assert str(error.value).startswith(message)


def test_unknown_and_unreadable_studies(tmp_path):
    with pytest.raises(InputError, match="unknown study 'tabel2'; did you mean 'table2'"):
        study.load("tabel2")
    with pytest.raises(InputError, match=r"nowhere\.toml: cannot be read: No such file"):
        study.load(str(tmp_path / "nowhere.toml"))
    (tmp_path / "odd.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(InputError, match=r"odd\.toml: not a text file in UTF-8: .* at byte 9"):
        study.load(str(tmp_path / "odd.toml"))
    with pytest.raises(ConfigError, match=r"row 'GCN \{method.size\}': there is no setting 'method.size'"):
        study.parse("odd", tiny.TEXT.replace('row = "GCN"', 'row = "GCN {method.size}"', 1)).plan()
    (tmp_path / "own.toml").write_text(tiny.TEXT)
    assert study.load(str(tmp_path / "own.toml")).name == "own"
