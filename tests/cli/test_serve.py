"""`lignn serve` and `lignn labels` on the command line."""

import builtins
import socket
import sys

import pytest

pytest.importorskip("fastapi", reason="the service needs the extra lignn[serve]")

from tests.classifier.small import fitted, small_split
from tests.cli.commands import outcome, run

UNKNOWN = [f"node{i}" for i in small_split().test.nonzero().flatten().tolist()]


def fails(*arguments):
    found = outcome(*arguments)
    assert (found.code, found.out) == (2, ""), found
    return found.err


@pytest.fixture
def model(tmp_path):
    fitted("lpa").save(tmp_path / "model")
    return tmp_path / "model"


def test_labels_go_in_and_come_out(model, tmp_path):
    (tmp_path / "new.csv").write_text(f"id,label\n{UNKNOWN[0]},b\n{UNKNOWN[1]},c\n")
    assert "2 labels changed" in run("labels", "import", str(model), str(tmp_path / "new.csv"), "--who", "Ada")
    assert "0 labels changed" in run("labels", "import", str(model), str(tmp_path / "new.csv"))
    rows = run("labels", "export", str(model)).splitlines()
    assert rows[0] == "id,label,who,time"
    assert [row.split(",")[:3] for row in rows if "Ada" in row] == [[UNKNOWN[0], "b", "Ada"], [UNKNOWN[1], "c", "Ada"]]
    assert len(rows) == 1 + 30 + 2
    run("labels", "export", str(model), "--to", str(tmp_path / "all.csv"))
    assert (tmp_path / "all.csv").read_text().splitlines() == rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "{model}", "--host", "0.0.0.0"], "so a token is needed"),
        (["serve", "{model}", "--tls-cert", "x"], "give both, or none"),
        (["serve", "{model}", "-o", "x"], "is a model, which a fit replaces"),
        (["serve", "nowhere", "--port", "0"], "nowhere"),
        (["labels", "import", "{model}", "{new}"], "class 'zebra' was not there in training"),
        (["labels", "export", "{model}", "--to", "x.txt"], "labels are written as .csv"),
    ],
)
def test_bad_input(model, tmp_path, arguments, message, monkeypatch):
    monkeypatch.delenv("LIGNN_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("id,label\nnode1,zebra\n")
    names = {"{model}": str(model), "{new}": str(tmp_path / "new.csv")}
    assert message in fails(*(names.get(argument, argument) for argument in arguments))


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["labels", "export"], ["labels", "import"]])
def test_a_model_that_is_not_there_leaves_no_journal(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("id,label\nnode1,a\n")
    more = ["new.csv"] if "import" in command else []
    assert "nowhere" in fails(*command, "nowhere", *more)
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_a_port_that_is_taken_is_one_sentence(model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = fails("serve", str(model), "--port", str(port))
    assert told == f"error: --host 127.0.0.1 --port {port}: cannot be used: Address already in use\n"


def test_a_missing_extra_is_one_sentence(model, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **more):
        if name.split(".")[0] == "fastapi":
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return real(name, *arguments, **more)

    for name in [name for name in sys.modules if name.startswith("lignn.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    told = fails("serve", str(model))
    assert told.strip() == "error: lignn serve needs fastapi, which is not installed; pip install 'lignn[serve]'"
