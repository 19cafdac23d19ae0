"""Atomic writes: complete or not at all, and no file of the user is lost."""

import errno
import os
import sys
import threading
from pathlib import Path

import pytest

from lignn.atomic import locked, whole_file, whole_folder
from lignn.errors import InputError, LignnError


def content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def fill(folder: Path, text: str = "new") -> None:
    with whole_folder(folder, marker="mark", ours=["a", "b"]) as temporary:
        (temporary / "mark").write_text("")
        (temporary / "a").write_text(text)


def fail_half_way(path: Path, error: type[BaseException]) -> None:
    path.write_text("half")
    raise error


def write(path: Path) -> None:
    with whole_file(path) as temporary:
        temporary.write_text("new")


def test_file_appears_when_the_body_ends(tmp_path):
    with whole_file(tmp_path / "model.npz") as temporary:
        assert temporary.suffix == ".npz"
        temporary.write_text("new")
        assert not (tmp_path / "model.npz").exists()
    assert content(tmp_path) == {"model.npz": "new"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_file_stays_as_it_was_if_the_body_fails(tmp_path, error):
    (tmp_path / "file").write_text("old")
    with pytest.raises(error), whole_file(tmp_path / "file") as temporary:
        fail_half_way(temporary, error)
    assert content(tmp_path) == {"file": "old"}


def test_file_gets_the_usual_permissions(tmp_path):
    write(tmp_path / "ours")
    (tmp_path / "usual").write_text("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_link_is_written_through(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_file_does_not_replace_a_folder(tmp_path):
    with pytest.raises(InputError, match="is a folder, a file is to be written there"), whole_file(tmp_path):
        pass


def test_missing_parent_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none/file: cannot be written there: No such file"):
        write(tmp_path / "none" / "file")
    with pytest.raises(InputError, match=r"none/folder: cannot be written there: No such file"):
        fill(tmp_path / "none" / "folder")


def test_full_disk_is_not_bad_input(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LignnError, match="could not be written: No space left on device") as caught:
        write(tmp_path / "file")
    assert not isinstance(caught.value, InputError)
    with pytest.raises(LignnError, match="No space left on device"):
        fill(tmp_path / "folder")
    assert content(tmp_path) == {"file": "old"}


def test_folder_is_new_or_replaces_an_empty_one_or_our_own(tmp_path):
    fill(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    fill(tmp_path / "empty")
    fill(tmp_path / "new", "newer")
    assert content(tmp_path) == {"new/mark": "", "new/a": "newer", "empty/mark": "", "empty/a": "new"}
    assert sorted(os.listdir(tmp_path)) == ["empty", "new"]


@pytest.mark.parametrize(
    ("names", "message"),
    [(["a"], r"other content \(no mark\)"), (["mark", "thesis.tex"], "'thesis.tex' in it was not written by lignn")],
)
def test_folder_of_the_user_is_refused(tmp_path, names, message):
    (tmp_path / "folder").mkdir()
    for name in names:
        (tmp_path / "folder" / name).write_text("mine")
    before = content(tmp_path)
    with pytest.raises(InputError, match=message):
        fill(tmp_path / "folder")
    assert content(tmp_path) == before


def test_folder_does_not_replace_a_file(tmp_path):
    (tmp_path / "folder").write_text("mine")
    with pytest.raises(InputError, match="is a file, a folder is to be written there"):
        fill(tmp_path / "folder")
    assert content(tmp_path) == {"folder": "mine"}


def test_folder_stays_as_it_was_if_the_body_fails(tmp_path):
    fill(tmp_path / "folder", "old")
    before = content(tmp_path)
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "folder", "mark", ["a"]) as temporary:
        fail_half_way(temporary / "a", RuntimeError)
    assert content(tmp_path) == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need two renames")
def test_a_folder_is_replaced_in_one_step(tmp_path, monkeypatch):
    fill(tmp_path / "folder", "old")
    renames = []
    monkeypatch.setattr(os, "replace", lambda *paths: renames.append(paths))
    fill(tmp_path / "folder")
    assert renames == []
    assert content(tmp_path) == {"folder/mark": "", "folder/a": "new"}


def test_old_folder_returns_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr("lignn.atomic._exchange", lambda *_: False)
    fill(tmp_path / "folder", "old")
    before = content(tmp_path)
    replace = os.replace

    def refuse_once(source, target):
        if Path(target) == tmp_path / "folder":
            monkeypatch.setattr(os, "replace", replace)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse_once)
    with pytest.raises(LignnError, match="nothing was changed"):
        fill(tmp_path / "folder")
    assert content(tmp_path) == before


def test_if_the_old_folder_cannot_return_either_its_place_is_told(tmp_path, monkeypatch):
    fill(tmp_path / "folder", "old")
    replace = os.replace

    def refuse(source, target):
        if Path(target) == tmp_path / "folder":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target)

    monkeypatch.setattr("lignn.atomic._exchange", lambda *_: False)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(
        LignnError, match=r"folder: could not be written: Input/output error; it is now at (.*)"
    ) as told:
        fill(tmp_path / "folder")
    assert content(Path(str(told.value).rpartition(" ")[2])) == {"mark": "", "a": "old"}


def test_reasons_do_not_tell_of_the_temporary_file(tmp_path):
    reason = r"none/file: cannot be written there: No such file or directory$"
    with pytest.raises(InputError, match=reason), whole_file(tmp_path / "none" / "file") as temporary:
        raise FileNotFoundError(errno.ENOENT, f"Failed to open local file '{temporary}'")


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path):
    (tmp_path / ".0123abcd.file").write_text("half")
    (tmp_path / ".file.lock").touch()
    (tmp_path / ".0123abcd.folder").mkdir()
    (tmp_path / ".0123abcd.other").write_text("not of these")
    (tmp_path / ".file").write_text("mine")
    write(tmp_path / "file")
    fill(tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == [".0123abcd.other", ".file", "file", "folder"]


def test_a_write_waits_for_another_one_to_the_same_place(tmp_path):
    order = []

    def late():
        write(tmp_path / "file")
        order.append("second")

    with whole_file(tmp_path / "file") as temporary:
        temporary.write_text("first")
        thread = threading.Thread(target=late)
        thread.start()
        thread.join(timeout=0.2)
        order.append("first")
    thread.join(timeout=60)
    assert order == ["first", "second"]
    assert content(tmp_path) == {"file": "new"}


def test_a_lock_is_had_by_one(tmp_path):
    file = tmp_path / "lock"
    with locked(file) as had:
        assert had
        with pytest.raises(InputError, match="taken"), locked(file, "taken"):
            pass
    assert not file.exists()


def test_a_folder_that_cannot_be_flushed_is_not_called_unchanged(tmp_path, monkeypatch):
    replace = os.replace

    def then_fail(source, target):
        replace(source, target)
        monkeypatch.setattr(os, "fsync", fail)

    def fail(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "replace", then_fail)
    with pytest.raises(LignnError, match=r"file: was written, but may not be safe on the disk: Input/output error$"):
        write(tmp_path / "file")
    assert content(tmp_path) == {"file": "new"}
