from lignn.studies import study
from lignn.studies.results import Results
from tests.studies import tiny


def test_only_planned_runs_are_used_however_many():
    runs = [tiny.planned("table2", "GCN", seed, 0.4) for seed in (0, 12)]
    other = tiny.record("GCN", 0, 0.99)
    found = Results.of("table2", [*runs, other], study.load("table2"))
    assert found.records == runs
    assert found.left_out == [other]
    assert found.cells["GCN", "chameleon"] == (1, 10)


def test_a_run_counts_for_the_row_that_plans_it():
    renamed = tiny.planned("table2", "LI-GCN", 0, 0.4) | {"row": "LIGCN", "against": None}
    (record,) = Results.of("table2", [renamed], study.load("table2")).records
    assert (record["row"], record["against"]) == ("LI-GCN", "GCN")


def test_ones_own_study_has_all_its_records():
    runs = [tiny.record("GCN", 0, 0.4), tiny.record("GAT", 0, 0.4, dataset="cora")]
    found = Results.of("own", runs, None)
    assert (found.rows, found.datasets, found.left_out) == (["GCN", "GAT"], ["chameleon", "cora"], [])
    assert found.absence("GAT", "chameleon") == ""


def test_why_a_cell_is_empty():
    found = Results.of("table2", [], study.load("table2"), {"flickr"})
    assert found.absence("GCN", "flickr") == "not run: data not available here"
    assert found.absence("GCN", "squirrel") == "not run"
    assert found.absence("L-GCN (α input)", "chameleon") == ""
