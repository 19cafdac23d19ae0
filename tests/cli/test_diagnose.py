import json
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
    assert record["spectral_radius"] == pytest.approx(certificate.spectral_radius, rel=1e-6)


def test_a_method_without_an_equilibrium_says_so(place: Path) -> None:
    run("fit", "mine", "-o", "plain", "--method", "backbone", "--max-epochs", 2)
    assert "there is no equilibrium to certify" in run("diagnose", "plain")
