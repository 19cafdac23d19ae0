"""The short form of the soak; the long one is `make soak`."""

import pytest

from tests.serve import soak


def test_killed_at_random_moments_no_answered_label_is_lost(tmp_path):
    found = soak.kill(tmp_path, times=1, seconds=0.5)
    assert found["answered"] > 0
    assert found["rows"] >= 1


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with soak.started(tmp_path_factory.mktemp("soak")) as service:
        yield service


def test_many_clients_meet_no_error(service):
    found = soak.load(service, clients=8, seconds=1.0)
    assert found["errors"] == []
    assert sum(map(len, found["times"].values())) > 8


def test_failures_below_the_service_are_told_and_it_goes_on(service):
    told = soak.failures(service)
    assert "the journal could not be written (disk I/O error), so nothing was changed" in told["disk"]
    assert "another program holds it, try again later" in told["lock"]
    assert "was replaced by another program" in told["model"]
