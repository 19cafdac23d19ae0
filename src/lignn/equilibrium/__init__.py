"""Equilibria of maps on a state tensor: solving, differentiating, certifying; no graphs, labels or networks here."""

from lignn.equilibrium import solvers, wellposed
from lignn.equilibrium.gradient import Gradient, Implicit, LastStep, Unrolled, fixed_point
from lignn.equilibrium.solution import Solution, Status
from lignn.equilibrium.solve import Map, adjoint, solve

__all__ = [
    "Gradient",
    "Implicit",
    "LastStep",
    "Map",
    "Solution",
    "Status",
    "Unrolled",
    "adjoint",
    "fixed_point",
    "solve",
    "solvers",
    "wellposed",
]
