"""Solvers of `z = f(z)`. `Picard` is the default of `solve` and defined beside it; each of the others has a file.

How to choose: `Picard` if the map contracts well (K̂ below about 0.8) or if you want a fixed number of steps; `Anderson`
if the map contracts slowly or the tolerance is tight; `Broyden` if Anderson's history is not enough, e.g. for maps that
rotate or expand the state in some directions.
"""

from lignn.equilibrium.solve import Picard, Rule, Solver
from lignn.equilibrium.solvers.anderson import Anderson
from lignn.equilibrium.solvers.broyden import Broyden

__all__ = ["BY_NAME", "Anderson", "Broyden", "Picard", "Rule", "Solver"]

BY_NAME: dict[str, type[Solver]] = {"picard": Picard, "anderson": Anderson, "broyden": Broyden}
"""Solvers that can be asked for by name; add your own."""
