"""Solvers of `z = f(z)`. `Picard` is the default of `solve` and defined beside it; each of the others has a file.

How to choose: `Picard` if the map contracts well (K̂ below about 0.8) or if you want a fixed number of steps; `Anderson`
if the map contracts slowly or the tolerance is tight; `Broyden` if Anderson's history is not enough, e.g. for maps that
rotate or expand the state in some directions.
"""

from lignn.equilibrium.solve import Picard, Rule, Solver
from lignn.equilibrium.solvers.anderson import Anderson
from lignn.equilibrium.solvers.broyden import Broyden
from lignn.errors import unknown

__all__ = ["BY_NAME", "Anderson", "Broyden", "Picard", "Rule", "Solver", "by_name"]

BY_NAME: dict[str, type[Solver]] = {"picard": Picard, "anderson": Anderson, "broyden": Broyden}
"""Solvers that can be asked for by name; add your own."""


def by_name(name: str) -> type[Solver]:
    """Return the class of the solver called `name`.

    Raises:
        ConfigError: if there is none; the message names the closest one.
    """
    if name not in BY_NAME:
        raise unknown("solver", name, BY_NAME)
    return BY_NAME[name]
