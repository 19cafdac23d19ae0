import json
from dataclasses import asdict
from pathlib import Path

import pytest

import lignn
from tests.cli.commands import outcome, run


def test_the_certificate_in_words(place: Path) -> None:
    assert run("diagnose", "model").startswith(str(lignn.load("model").diagnose()))


def test_json_and_nothing_else(place: Path) -> None:
    result = outcome("diagnose", "model", "--json")
    record = json.loads(result.out)
    certificate = lignn.load("model").diagnose()
    assert result.err == ""
    assert record["status"] == certificate.status
    assert record["steps"] == certificate.steps
    assert record["calibration"] is None  # two held-out labels are too few
    assert record["spectral_radius"] == pytest.approx(certificate.spectral_radius, rel=1e-6)


def test_a_method_without_an_equilibrium_says_so(place: Path) -> None:
    run("fit", "mine", "-o", "plain", "--method", "backbone", "--max-epochs", 2)
    assert "there is no equilibrium to certify" in run("diagnose", "plain")


def test_calibration_is_told_in_words_and_in_json(place: Path) -> None:
    assert "confidence: not calibrated" in run("diagnose", "model")
    run("fit", "karate", "-o", "plain", "--method", "lpa")
    calibration = lignn.load("plain").calibration_
    found = json.loads(run("diagnose", "plain", "--json"))["calibration"]
    assert found == (None if calibration is None else asdict(calibration))
