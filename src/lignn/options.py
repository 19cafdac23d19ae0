"""Checks of options that are given by name: whether a factory has them, and whether their types fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from lignn.errors import ConfigError, did_you_mean

_TYPES: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "true or false"),
}

T = TypeVar("T")


def named(what: str, name: str, table: Mapping[str, T]) -> T:
    """Return `table[name]`.

    Args:
        what: the kind of thing that is named, for the message.
        name: a key of `table`.
        table: all that can be named.

    Raises:
        ConfigError: if the name is unknown; the message names the closest one.
    """
    if name not in table:
        raise ConfigError(f"{what} {name!r} is unknown; {did_you_mean(str(name), table)}")
    return table[name]


def check_options(
    what: str, factory: Callable[..., Any], options: Mapping[str, Any], known: Collection[str] | None = None
) -> None:
    """Raise if `factory` does not have one of the options, or if a value is not of the annotated type.

    Only the annotations `int`, `float` and `bool` are checked.

    Args:
        what: what has the options, for error messages.
        factory: the function or class that will be called with the options.
        options: values of the options by name.
        known: names of the options that may be given; by default all parameters of `factory`.
    """
    parameters = inspect.signature(factory).parameters
    known = parameters if known is None else known
    for option, value in options.items():
        if option not in known:
            advice = did_you_mean(option, known) if known else "it has none"
            raise ConfigError(f"{what} has no option {option!r}; {advice}")
        annotation = parameters[option].annotation if option in parameters else ""
        kind, wanted = _TYPES.get(getattr(annotation, "__name__", annotation), (object, ""))
        if not isinstance(value, kind) or (isinstance(value, bool) and kind in (Integral, Real)):
            raise ConfigError(f"{what}: {option}: {wanted} is needed, got {value!r}")
