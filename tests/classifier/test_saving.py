"""Saved models: as they were, wherever they are loaded; damage is one sentence."""

import json

import numpy as np
import pytest
import torch

import lignn
from lignn import NodeClassifier
from lignn.backbones import GCN
from lignn.classifier import config_file, saving
from lignn.errors import InputError
from lignn.methods import NAMES
from tests.classifier.small import fitted, small_graph, small_split
from tests.problems import half_split, random_graph

FILES = (saving.CONFIG, saving.WEIGHTS, saving.GRAPH, saving.HISTORY)


@pytest.fixture
def model(tmp_path):
    fitted(max_epochs=3).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def files(model):
    """Where the files of the model are."""
    return model / "generation-1"


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize("method", NAMES)
def test_loads_as_it_was_from_another_place(tmp_path, monkeypatch, method):
    classifier = fitted(method, max_epochs=3)
    classifier.save(tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / "moved")
    monkeypatch.chdir("/")
    loaded = lignn.load(tmp_path / "moved")
    assert loaded.get_params() == classifier.get_params()
    assert np.array_equal(loaded.predict_proba(), classifier.predict_proba())
    assert loaded.history_.epochs == json.loads(json.dumps(classifier.history_.epochs))
    assert (loaded.history_.best, loaded.history_.end) == (classifier.history_.best, classifier.history_.end)
    assert loaded.score("test") == classifier.score("test")
    assert loaded.calibration_ == classifier.calibration_
    assert loaded.graph_.node_ids.tolist() == small_graph().node_ids.tolist()
    assert np.array_equal(loaded.predict(small_graph()), classifier.predict(small_graph().replace(name="same")))
    node = int(small_split().test.nonzero()[0])
    for one in (loaded, classifier):
        one.update_labels({node: 1})
    assert np.array_equal(loaded.predict_proba(), classifier.predict_proba())


def test_goes_on_after_loading(model):
    loaded = lignn.load(model)
    loaded.update_labels({0: 1}, epochs=2)
    loaded.add_nodes(small_graph().x[:1].numpy(), [[0], [90]], ["new"])
    loaded.save(model)
    again = lignn.load(model)
    assert again.graph_.num_nodes == 91
    assert np.array_equal(again.predict_proba(), loaded.predict_proba())


def test_parameters_set_after_the_fit_are_not_those_of_the_model(tmp_path):
    classifier = fitted(max_epochs=3)
    classifier.set_params(hidden=32, max_steps=1).save(tmp_path / "m")
    loaded = lignn.load(tmp_path / "m")
    assert (loaded.hidden, loaded.max_steps) == (16, None)
    assert loaded.method_.inference == classifier.method_.inference
    assert np.array_equal(loaded.predict(small_graph()), classifier.predict(small_graph().replace(name="same")))


def test_several_classes_a_node(tmp_path):
    classifier = fitted(graph=random_graph(n=30, multilabel=True), split=half_split(30), max_epochs=2)
    classifier.save(tmp_path / "m")
    assert np.array_equal(lignn.load(tmp_path / "m").predict_proba(), classifier.predict_proba())


def test_the_folder_has_nothing_but_json_safetensors_and_arrays(model, files):
    assert {file.name for file in model.iterdir()} == {"current", "generation-1"}
    assert {file.name for file in files.iterdir()} == set(FILES)
    config = json.loads((files / saving.CONFIG).read_text(encoding="utf-8"))
    assert config["format"] == saving.FORMAT
    assert config["resolved"]["hidden"] == 16
    assert config["resolved"]["lr"] == 0.01
    assert config["classes"]["names"] == ["a", "b", "c"]
    assert config["graph"]["nodes"] == 90
    assert b"pickle" not in b"".join((files / name).read_bytes() for name in FILES)


def test_objects_are_asked_for(tmp_path):
    backbone = GCN(6, 3, label_inputs=3, hidden=4)
    classifier = NodeClassifier(backbone=backbone, max_epochs=2).fit(small_graph(), small_split())
    classifier.save(tmp_path / "m")
    with pytest.raises(InputError, match=r"made with a backbone of your own; give load\(…, backbone=…\)"):
        lignn.load(tmp_path / "m")
    loaded = lignn.load(tmp_path / "m", backbone=GCN(6, 3, label_inputs=3, hidden=4))
    assert np.array_equal(loaded.predict_proba(), classifier.predict_proba())
    with pytest.raises(InputError, match="the parts of the model do not fit together"):
        lignn.load(tmp_path / "m", backbone=GCN(6, 3, label_inputs=3, hidden=5))


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_damaged_files(model, files, name, damage):
    content = (files / name).read_bytes()
    if damage == "gone":
        (files / name).unlink()
    else:
        changed = content[: len(content) // 2] if damage == "cut" else content[:-1] + bytes([content[-1] ^ 1])
        (files / name).write_bytes(changed)
    message = "is missing from the model" if damage == "gone" else "is not what was saved"
    with pytest.raises(InputError, match=f"{name}: {message}"):
        lignn.load(model)


def test_changed_config(model, files):
    file = files / saving.CONFIG
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"hidden": 16', '"hidden": 17', 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.json: was changed after the model was saved"):
        lignn.load(model)
    for damaged in (text[: len(text) // 2], "[]", "{}", "\x00"):
        file.write_text(damaged, encoding="utf-8")
        with pytest.raises(InputError, match=r"config\.json: is damaged"):
            lignn.load(model)


def test_a_newer_format(model, files):
    config = json.loads((files / saving.CONFIG).read_text(encoding="utf-8"))
    (files / saving.CONFIG).write_text(json.dumps(config | {"format": 99}), encoding="utf-8")
    with pytest.raises(InputError, match="saved by a newer lignn"):
        lignn.load(model)


def test_no_model(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="there is no model here"):
            lignn.load(path)


def test_a_model_is_written_whole_or_not_at_all(model, files, monkeypatch):
    before = {name: (files / name).read_bytes() for name in FILES}

    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "save", full)
    with pytest.raises(lignn.errors.LignnError, match="No space left on device; nothing was changed"):
        fitted("lpa").save(model)
    with pytest.raises(lignn.errors.LignnError, match="No space left"):
        fitted("lpa").save(model.parent / "new")
    assert {name: (files / name).read_bytes() for name in FILES} == before
    assert {file.name for file in model.iterdir()} == {"current", "generation-1"}
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_another_s_folder_is_not_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="other content"):
        fitted("lpa").save(tmp_path)


def test_only_plain_values_can_be_saved(tmp_path):
    classifier = fitted("lpa", method_options={"solver": lignn.solvers.Picard(tol=0, max_steps=5)})
    with pytest.raises(InputError, match="method_options: only plain values can be saved"):
        classifier.save(tmp_path / "m")
    numbers = fitted("lpa", method_options={"lam": np.float32(0.5)})
    numbers.save(tmp_path / "m")
    assert torch.equal(torch.tensor(lignn.load(tmp_path / "m").predict()), torch.tensor(numbers.predict()))


def test_others_may_read_a_model_as_they_may_read_any_new_file(model, files):
    (model.parent / "usual").write_text("")
    modes = {path: path.stat().st_mode for path in (model / "current", *(files / name for name in FILES))}
    assert set(modes.values()) == {(model.parent / "usual").stat().st_mode}


def test_a_file_that_cannot_be_read_is_named(model, monkeypatch):
    def locked(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(config_file, "checksum", locked)
    with pytest.raises(InputError, match=r"model/generation-1/weights.safetensors: cannot be read: Permission denied"):
        lignn.load(model)


def test_a_save_makes_a_new_generation_and_removes_what_was_left(model):
    (model / "generation-7").mkdir()
    (model / "generation-7" / ".0123abcd.graph.npz").write_text("half")
    (model / "generation-7" / ".graph.npz.lock").touch()
    (model / ".89abcdef.current").write_text("generation-7")
    (model.parent / ".01234567.model").mkdir()
    (model.parent / ".model.lock").touch()
    saving.check(model)
    newer = fitted("lpa")
    newer.save(model)
    assert (model / "current").read_text() == "generation-2\n"
    assert names(model) == sorted(["current", "generation-2", *(f"generation-2/{name}" for name in FILES)])
    assert [path.name for path in model.parent.iterdir()] == ["model"]
    assert np.array_equal(lignn.load(model).predict_proba(), newer.predict_proba())


def test_settings_belong_to_a_generation(model):
    classifier = lignn.load(model)
    saving.write(model, classifier._fitted, "hidden = 16\n")
    assert saving.settings_file(model).read_text() == "hidden = 16\n"
    assert lignn.load(model).hidden == 16
    classifier.save(model)
    assert not saving.settings_file(model).exists()


@pytest.mark.parametrize("content", ["", "../other", "generation-1/../..", "generation-x", "/"])
def test_current_names_nothing_but_a_generation(model, content):
    (model / "current").write_text(content)
    for act in (lignn.load, fitted("lpa").save):
        with pytest.raises(InputError, match="current: is damaged, it does not name a generation"):
            act(model)


@pytest.mark.parametrize("place", ["notes.txt", "generation-1/notes.txt", "generation-x", ".0123abcd.notes"])
def test_a_folder_with_a_file_of_somebody_else_is_not_replaced(model, place):
    (model / place).write_text("mine")
    with pytest.raises(InputError, match="was not written by lignn; move it away first"):
        fitted("lpa").save(model)
    assert (model / place).read_text() == "mine"


def test_a_reader_follows_a_save_that_removes_what_it_reads(model, monkeypatch):
    newer, restored = fitted("lpa"), saving._restored

    def overtaken(*arguments):
        monkeypatch.setattr(saving, "_restored", restored)
        newer.save(model)
        return restored(*arguments)

    monkeypatch.setattr(saving, "_restored", overtaken)
    assert np.array_equal(lignn.load(model).predict_proba(), newer.predict_proba())


def test_a_system_without_locks(model, monkeypatch):
    monkeypatch.setattr("lignn.atomic.fcntl", None)
    (model / "generation-2").mkdir()
    newer = fitted("lpa")
    newer.save(model)
    assert {path.name for path in model.iterdir()} == {"current", "generation-3"}
    assert np.array_equal(lignn.load(model).predict_proba(), newer.predict_proba())
