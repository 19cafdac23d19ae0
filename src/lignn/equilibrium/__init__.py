"""Equilibria of maps on a state tensor: solving, differentiating, certifying. No graphs, labels or networks here."""

from lignn.equilibrium import norms, solvers, wellposed
from lignn.equilibrium.gradient import GRADIENTS, Gradient, Implicit, LastStep, Maps, Unrolled, gradient_named
from lignn.equilibrium.layer import differentiable, fixed_point
from lignn.equilibrium.norms import WHOLE, Space
from lignn.equilibrium.solve import Map, Solution, Status, adjoint, solve

__all__ = [
    "GRADIENTS",
    "WHOLE",
    "Gradient",
    "Implicit",
    "LastStep",
    "Map",
    "Maps",
    "Solution",
    "Space",
    "Status",
    "Unrolled",
    "adjoint",
    "differentiable",
    "fixed_point",
    "gradient_named",
    "norms",
    "solve",
    "solvers",
    "wellposed",
]
