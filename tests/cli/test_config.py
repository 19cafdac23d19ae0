import math
from pathlib import Path

import pytest

from lignn.cli import config
from lignn.errors import ConfigError

KNOWN = ("hidden", "tol", "solver", "warm_start", "backbone_options")


def test_written_settings_are_read_back(tmp_path: Path) -> None:
    settings = {
        "hidden": 64,
        "tol": 1e-05,
        "solver": 'a "quoted" \\ Grüße\n',
        "warm_start": True,
        "backbone_options": {"num layers": 3, "alpha": 0.1},
    }
    config.write(tmp_path / "a.toml", settings, "what it is")
    assert config.read(tmp_path / "a.toml", KNOWN) == settings
    assert (tmp_path / "a.toml").read_text(encoding="utf-8").startswith("# what it is\n")


def test_what_has_no_value_is_left_out(tmp_path: Path) -> None:
    config.write(tmp_path / "a.toml", {"hidden": None, "tol": math.pi}, "")
    assert config.read(tmp_path / "a.toml", KNOWN) == {"tol": math.pi}


def test_unknown_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("hiden = 3")
    with pytest.raises(ConfigError, match=r"a\.toml: there is no setting 'hiden'; did you mean 'hidden'\?"):
        config.read(tmp_path / "a.toml", KNOWN)
