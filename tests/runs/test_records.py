import errno
import json

import pytest

from lignn.errors import InputError
from lignn.runs import records
from tests.studies import tiny


def test_what_is_appended_is_read(tmp_path):
    file = records.file_of(tmp_path / "new", "tiny")
    assert records.read(file) == []
    records.repair(file)
    for number in range(3):
        records.append(file, {"id": str(number), "β": 0.5})
    assert [record["id"] for record in records.read(file)] == ["0", "1", "2"]
    assert file.read_text(encoding="utf-8").count("\n") == 3


def test_a_later_record_takes_the_place_of_an_earlier_one(tmp_path):
    file = tmp_path / "x.jsonl"
    records.append(file, {"id": "a", "status": "failed"})
    records.append(file, {"id": "a", "status": "ok"})
    assert records.read(file) == [{"id": "a", "status": "ok"}]


def test_a_torn_last_line_is_ignored_and_cut_off(tmp_path):
    file = tmp_path / "x.jsonl"
    records.append(file, {"id": "a"})
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"id": "b", "sco')
    assert records.read(file) == [{"id": "a"}]
    records.repair(file)
    assert file.read_bytes() == whole
    records.append(file, {"id": "b"})
    assert [record["id"] for record in records.read(file)] == ["a", "b"]


@pytest.mark.parametrize("line", ["{", "[1]", "{}", "3"])
def test_a_damaged_line_elsewhere_is_named(tmp_path, line):
    file = tmp_path / "x.jsonl"
    file.write_text(f'{{"id": "a"}}\n{line}\n{{"id": "b"}}\n')
    with pytest.raises(InputError, match=r"x\.jsonl, line 2: not a record"):
        records.read(file)


def test_infinity_is_refused_since_json_has_none(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.append(tmp_path / "x.jsonl", {"id": "a", "loss": float("inf")})


def test_an_unwritable_place_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="records cannot be written there"):
        records.repair(tmp_path / "file" / "x.jsonl")


def test_provenance_is_plain_and_names_versions():
    made = json.loads(json.dumps(records.provenance()))
    assert set(made["versions"]) == {"lignn", "python", "torch", "numpy", "scipy", "numba", "scikit-learn", "lightgbm"}
    assert made["commit"] is None or len(made["commit"]["hash"]) == 40


def test_a_package_outside_of_a_checkout_has_no_commit(tmp_path):
    assert records._commit(tmp_path) is None


def test_one_process_at_a_time_may_add_records_while_others_read(tmp_path):
    file = tmp_path / "new" / "x.jsonl"
    with records.locked(file):
        records.append(file, {"id": "a"})
        assert records.read(file) == [{"id": "a"}]
        with pytest.raises(InputError, match=r"x\.jsonl: another process is adding records"), records.locked(file):
            pass
    with records.locked(file):
        pass


def test_systems_without_locks_go_without(tmp_path, monkeypatch):
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    file = tmp_path / "x.jsonl"
    for place, value in (("fcntl.flock", unsupported), ("lignn.atomic.fcntl", None)):
        monkeypatch.setattr(place, value)
        with records.locked(file), records.locked(file):
            records.append(file, {"id": place})
    assert len(records.read(file)) == 2


def test_scores_are_percent_of_the_runs_that_succeeded():
    runs = [tiny.record("GCN", 0, 0.4), tiny.record("GCN", 1, 0.5, status="failed"), tiny.record("GCN", 2, 0.6)]
    assert records.scores(runs) == {("GCN", "chameleon"): {0: 40.0, 2: 60.0}}


def test_runs_of_one_seed_are_a_pair_however_their_split_is_numbered():
    # where a dataset has one split, older records number it by the run
    older, newer = tiny.record("GCN", 1, 0.4, split=1), tiny.record("LI-GCN", 1, 0.5, split=0)
    cells = records.scores([older, newer])
    assert cells["GCN", "chameleon"].keys() == cells["LI-GCN", "chameleon"].keys()
