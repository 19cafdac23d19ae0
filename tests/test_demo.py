"""The demo, with two epochs."""

import pytest
from tools import demo

from lignn.runs import workers
from tests.cli.test_docs import in_this_process


def test_the_demo_shows_predictions_and_pages(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(workers, "in_rounds", in_this_process)
    demo.run(tmp_path, quick=True)
    output = capsys.readouterr().out
    assert [output.index(f"\n{number}. {title}") for number, (title, _) in enumerate(demo.STEPS, 1)] == sorted(
        output.index(f"\n{number}. {title}") for number, (title, _) in enumerate(demo.STEPS, 1)
    )
    assert "id       label      confidence  evidence" in output
    for name in ("tables", "leaderboard", "weekday"):
        assert str(tmp_path / f"{name}.html") in output


def test_a_step_that_fails_ends_the_demo(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "STEPS", (("nothing", "lignn fit nowhere -o {out}/model"),))
    with pytest.raises(SystemExit) as end:
        demo.run(tmp_path)
    assert end.value.code == 2
