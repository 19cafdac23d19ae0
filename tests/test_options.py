"""Checks of options by name: each fault gives one sentence."""

import numpy as np
import pytest

from lignn.errors import ConfigError
from lignn.options import check_options


def factory(size: int = 1, rate: float = 0.5, on: bool = False, anything=None):
    return size, rate, on, anything


@pytest.mark.parametrize(
    "options", [{}, {"size": np.int64(3)}, {"rate": 1}, {"on": True}, {"anything": "x"}, {"anything": 1.5}]
)
def test_what_fits(options):
    check_options("it", factory, options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sise": 1}, "it has no option 'sise'; did you mean 'size'?"),
        ({"size": 1.5}, "it: size: a whole number is needed, got 1.5"),
        ({"size": True}, "it: size: a whole number is needed, got True"),
        ({"rate": "high"}, "it: rate: a number is needed, got 'high'"),
        ({"on": 1}, "it: on: true or false is needed, got 1"),
    ],
)
def test_what_does_not(options, message):
    with pytest.raises(ConfigError) as error:
        check_options("it", factory, options)
    assert str(error.value) == message


def test_only_some_may_be_given():
    with pytest.raises(ConfigError, match="it has no option 'rate'; choose from size"):
        check_options("it", factory, {"rate": 0.5}, ["size"])
    with pytest.raises(ConfigError, match="it has no option 'rate'; it has none"):
        check_options("it", factory, {"rate": 0.5}, [])
