"""The journal: what was answered is there after any end."""

import sqlite3

import pytest

from lignn.errors import JournalError
from lignn.serve.journal import Change, Journal


def test_changes_are_there_when_it_is_opened_again(tmp_path):
    journal = Journal(tmp_path / "j")
    assert journal.last() == 0
    assert journal.append(
        [("Ada", Change("label", "n/ö", "a")), ("Bo", Change("edge", '["x","y"]', {"weight": 2.5}))]
    ) == [1, 2]
    assert journal.append([("Ada", Change("label", "n/ö", None, "a"))]) == [3]
    journal.close()
    again = Journal(tmp_path / "j")
    assert [(e.seq, e.who, e.change) for e in again.entries()] == [
        (1, "Ada", Change("label", "n/ö", "a")),
        (2, "Bo", Change("edge", '["x","y"]', {"weight": 2.5})),
        (3, "Ada", Change("label", "n/ö", None, "a")),
    ]
    assert [e.seq for e in again.entries(1, kind="label", who="Ada")] == [3]
    assert again.touched() == {("label", "n/ö"): 3, ("edge", '["x","y"]'): 2}
    assert again.counts() == {"Ada": 2}
    assert [e.seq for e in again.latest(1)] == [3]
    again.forget([3])
    assert again.last() == 2
    again.close()


def test_numbers_are_never_used_twice(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.append([("a", Change("label", "x", "y"))])
    journal.forget([1])
    assert journal.append([("a", Change("label", "x", "y"))]) == [2]
    journal.close()


def test_it_survives_power_loss_by_its_settings(tmp_path):
    journal = Journal(tmp_path / "j")
    assert journal._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert journal._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    journal.close()


def test_commits_need_not_make_the_log_longer(tmp_path):
    """Neither do they find anything of what made it long, nor is the journal itself longer."""
    journal, log = Journal(tmp_path / "j"), tmp_path / "j-wal"
    size = (tmp_path / "j").stat().st_size
    journal.make_room()
    room = log.stat().st_size
    for i in range(300):
        journal.append([("a", Change("label", f"node{i}", "y"))])
    assert log.stat().st_size == room
    assert (tmp_path / "j").stat().st_size == size
    journal.close()
    assert len(Journal(tmp_path / "j").entries()) == 300


def test_a_full_disk_is_told_and_nothing_is_written(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.append([("a", Change("label", "x", "y"))])
    pages = journal._writer.execute("PRAGMA page_count").fetchone()[0]
    journal._writer.execute(f"PRAGMA max_page_count={pages}")
    many = [("a", Change("label", f"node{i}", "y" * 100)) for i in range(200)]
    with pytest.raises(JournalError, match=r"is full\), so nothing was changed; make room on its disk"):
        journal.append(many)
    assert journal.last() == 1
    journal._writer.execute("PRAGMA max_page_count=10000")
    assert len(journal.append(many)) == 200
    journal.close()


def test_a_locked_database_is_told(tmp_path):
    journal = Journal(tmp_path / "j")
    journal._writer.execute("PRAGMA busy_timeout=10")
    other = sqlite3.connect(tmp_path / "j", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalError, match=r"database is locked\), so nothing was changed; another program holds it"):
        journal.append([("a", Change("label", "x", "y"))])
    other.execute("ROLLBACK")
    other.close()
    assert journal.append([("a", Change("label", "x", "y"))]) == [1]
    journal.close()


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("no database, but long enough to look at" * 100)
    with pytest.raises(JournalError, match="cannot be opened as a journal of labels"):
        Journal(tmp_path / "text")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE mine (a)")
    other.close()
    before = (tmp_path / "other").read_bytes()
    with pytest.raises(JournalError, match="is a database of another program"):
        Journal(tmp_path / "other")
    assert (tmp_path / "other").read_bytes() == before
