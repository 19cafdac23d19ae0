"""A whole solve `z = f(z)` as one C function, without Python between the steps.

A step is five phases (`step_kernels`): enter, product, rows, product, finish. One thread leads: it opens a phase, takes
part in it, waits until no thread is in it any more, and takes all decisions (stopping rule, Anderson's weights). The
other threads join a phase if they find it open. A thread that the system has put to sleep between two phases holds
nobody up, which matters on a busy machine.

The stopping rule is that of `equilibrium.solve`, and the mixing that of `equilibrium.solvers.anderson`, on sums in
float64 that are added in the order of the blocks.
"""

import math
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic

from lignn.propagation.intrinsics import BYTE, INT64, as_pointer
from lignn.propagation.product_kernels import cached_on_disk
from lignn.propagation.step_kernels import MEMORY, SUMS, TASK

RUNNING, CONVERGED, BUDGET, STALLED, DIVERGING, NON_FINITE = range(6)
"""How a solve ended, or that it has not."""
RMS, LARGEST, RELATIVE = range(3)
"""Norms of the change."""
STATES = 6
"""Buffers of states: z, f, those of the last step, the best f, and one to write to."""
ENTERED, GATE, ACTIVE, FUNCTION, ARGUMENT, TEAM = range(6)
"""What the threads share: how many have come, the number of the phase (odd while it is open), how many are in it, its C
function and argument; and the number of these numbers."""
SPINS = 1000
"""Looks at the gate before a thread lets others run."""

_TEAM = ("team", "yield_thread")
_FUNCTIONS = ("enter", "rows", "finish", "product", "first_product", "second_product")
_SETTINGS = ("norm", "follows", "fixed", "memory", "max_steps")
_PLACES = ("at_z", "at_f", "at_last_z", "at_last_f", "at_best", "at_value")
_PROGRESS = ("status", "steps", "burst", "since_shortest", "in_use", "next_slot")
_ARRAYS = ("task", "states", "state_bytes", "residuals", "gram", "totals")
REALS = ("tol", "growth", "rounding", "eps", "tiny", "contraction", "shortest", "last_length")
INTEGERS = (*_TEAM, *_FUNCTIONS, *_SETTINGS, *_PLACES, *_PROGRESS, *_ARRAYS)
SOLVE = np.dtype([("step", TASK)] + [(name, np.int64) for name in INTEGERS] + [(name, np.float64) for name in REALS])
"""A solve: the task of its steps, C functions, settings, and how far it is."""


@intrinsic
def call(_typing: Any, address: Any, argument: Any) -> Any:
    """Call the C function at an address with an address as its only argument."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer()])
        pointer = builder.inttoptr(arguments[1], BYTE.as_pointer())
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [pointer])
        return context.get_dummy_value()

    return types.void(address, argument), generate


@intrinsic
def add_at(_typing: Any, _address: Any, _number: Any) -> Any:
    """Add to the 64-bit integer at an address and return its value from before, in one order for all threads."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        pointer = builder.inttoptr(arguments[0], INT64.as_pointer())
        return builder.atomic_rmw("add", pointer, arguments[1], ordering="seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def look_at(_typing: Any, _address: Any) -> Any:
    """Return the 64-bit integer at an address, as the last thread has written it."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        pointer = builder.inttoptr(arguments[0], INT64.as_pointer())
        return builder.load_atomic(pointer, ordering="seq_cst", align=8)

    return types.int64(types.int64), generate


@njit(error_model="numpy")
def _solve_linear(system, right, size):  # type: ignore[no-untyped-def]
    """Solve a small linear system by Gaussian elimination with pivots; both arguments are overwritten."""
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(system[i, k]) > abs(system[pivot, k]):
                pivot = i
        for j in range(size):
            system[k, j], system[pivot, j] = system[pivot, j], system[k, j]
        right[k], right[pivot] = right[pivot], right[k]
        for i in range(k + 1, size):
            factor = system[i, k] / system[k, k]
            for j in range(k, size):
                system[i, j] -= factor * system[k, j]
            right[i] -= factor * right[k]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            right[k] -= system[k, j] * right[j]
        right[k] /= system[k, k]


@njit(error_model="numpy")
def _mix(solve, totals):  # type: ignore[no-untyped-def]
    """Find Anderson's weights γ from the inner products of the last differences."""
    step, size = solve.step, solve.step.held
    gram = carray(as_pointer(solve.gram), (2, MEMORY, MEMORY), np.float64)
    gamma = carray(as_pointer(step.gamma), (MEMORY,), np.float64)
    for j in range(size):
        gram[0, step.slot, j] = gram[0, j, step.slot] = totals[5 + j]
    for i in range(size):
        scale = 1 / math.sqrt(max(gram[0, i, i], 2.2250738585072014e-308))
        for j in range(size):
            gram[1, i, j] = gram[0, i, j] * scale / math.sqrt(max(gram[0, j, j], 2.2250738585072014e-308))
        gram[1, i, i] += 1e-12
        gamma[i] = scale * totals[5 + MEMORY + i]
    _solve_linear(gram[1], gamma, size)
    for i in range(size):
        gamma[i] /= math.sqrt(max(gram[0, i, i], 2.2250738585072014e-308))


@njit(error_model="numpy")
def _observe(solve, totals):  # type: ignore[no-untyped-def]
    """Return the status after one step, as `_Progress.observe` does."""
    length, value_length = math.sqrt(totals[0]), math.sqrt(totals[1])
    size = length / math.sqrt(solve.step.entries)
    if solve.norm == LARGEST:
        size = totals[4]
    elif solve.norm == RELATIVE:
        size = length / max(value_length, solve.tiny)
    residuals = carray(as_pointer(solve.residuals), (solve.max_steps,), np.float64)
    residuals[solve.steps - 1] = size if math.isfinite(length) else length
    if solve.fixed:
        return RUNNING
    if not math.isfinite(length):
        return NON_FINITE
    ratio = 0.0
    if solve.steps > 1:
        above, below = (length, solve.last_length) if solve.follows else (math.sqrt(totals[2]), math.sqrt(totals[3]))
        # A step no larger than rounding says nothing about the map.
        ratio = above / below if below > 10 * solve.eps * value_length else 0.0
    solve.contraction = max(solve.contraction, ratio)
    if size <= solve.tol:
        return CONVERGED
    if length > 1e4 * solve.shortest:
        return DIVERGING
    if solve.growth > 0 and ratio > solve.growth:
        solve.at_best = solve.at_z if solve.follows else solve.at_best
        return DIVERGING
    if length < solve.shortest:
        solve.shortest, solve.since_shortest, solve.at_best = length, 0, solve.at_f
        return RUNNING
    solve.since_shortest += 1
    stalled = solve.since_shortest >= 5 and length <= solve.rounding * solve.eps * value_length
    return STALLED if stalled else RUNNING


@njit(error_model="numpy")
def _free(solve):  # type: ignore[no-untyped-def]
    """Return a buffer of states that is not in use."""
    place = 0
    while (
        place == solve.at_z or place == solve.at_f or place == solve.at_best
        or place == solve.at_last_z or place == solve.at_last_f
    ):  # fmt: skip
        place += 1
    return place


@njit(error_model="numpy")
def _next(solve, totals):  # type: ignore[no-untyped-def]
    """Choose the buffers of the next step, and the weights with which its state is mixed."""
    step, length = solve.step, math.sqrt(totals[0])
    step.mixes = 0
    if solve.memory:
        if step.has_last and length > 2 * solve.last_length:
            solve.in_use, solve.next_slot = 0, 0
        elif step.has_last:
            solve.in_use, solve.next_slot = step.held, (step.slot + 1) % solve.memory
            step.mixes = step.held
            _mix(solve, totals)
        solve.at_last_z, solve.at_last_f, step.has_last = solve.at_z, solve.at_f, 1
        step.last_z, step.last_f = step.z, step.f
        step.r, step.last_r = step.last_r, step.r
    solve.last_length = length
    if step.mixes:
        solve.at_z = _free(solve)
        step.z = solve.states + solve.at_z * solve.state_bytes
    else:
        solve.at_z, step.z = solve.at_f, step.f


@njit(error_model="numpy")
def run(solve, function, argument):  # type: ignore[no-untyped-def]
    """Run a phase together with all threads that are awake."""
    team = carray(as_pointer(solve.team), (TEAM,), np.int64)
    team[FUNCTION], team[ARGUMENT] = function, argument
    add_at(solve.team + 8 * GATE, 1)
    call(function, argument)
    add_at(solve.team + 8 * GATE, 1)
    spins = 0
    while look_at(solve.team + 8 * ACTIVE) > 0:
        spins += 1
        if spins > SPINS and solve.yield_thread:
            call(solve.yield_thread, 0)


@njit(error_model="numpy")
def follow(solve):  # type: ignore[no-untyped-def]
    """Take part in all phases that are found open, until the gate is negative."""
    team = carray(as_pointer(solve.team), (TEAM,), np.int64)
    seen, spins = 0, 0
    gate = look_at(solve.team + 8 * GATE)
    while gate >= 0:
        spins += 1
        if gate & 1 and gate != seen:
            add_at(solve.team + 8 * ACTIVE, 1)
            if look_at(solve.team + 8 * GATE) == gate:
                call(team[FUNCTION], team[ARGUMENT])
            add_at(solve.team + 8 * ACTIVE, -1)
            seen, spins = gate, 0
        elif spins > SPINS and solve.yield_thread:
            call(solve.yield_thread, 0)
        gate = look_at(solve.team + 8 * GATE)


@njit(error_model="numpy")
def _take_step(solve):  # type: ignore[no-untyped-def]
    """Run the five phases of a step, and add the sums of all blocks."""
    step = solve.step
    taken = carray(as_pointer(step.taken), (1,), np.int64)
    counts = (
        carray(as_pointer(solve.first_product), (1,), np.int64),
        carray(as_pointer(solve.second_product), (1,), np.int64),
    )
    taken[0], counts[0][0], counts[1][0] = 0, 0, 0
    run(solve, solve.enter, solve.task)
    run(solve, solve.product, solve.first_product)
    taken[0] = 0
    run(solve, solve.rows, solve.task)
    run(solve, solve.product, solve.second_product)
    taken[0] = 0
    run(solve, solve.finish, solve.task)
    sums = carray(as_pointer(step.sums), (step.blocks, SUMS), np.float64)
    totals = carray(as_pointer(solve.totals), (SUMS,), np.float64)
    for k in range(SUMS):
        totals[k] = 0.0
    for block in range(step.blocks):
        for k in range(SUMS):
            totals[k] = max(totals[k], sums[block, k]) if k == 4 else totals[k] + sums[block, k]


@njit(error_model="numpy")
def _lead(solve):  # type: ignore[no-untyped-def]
    """Take up to `burst` steps."""
    step = solve.step
    totals = carray(as_pointer(solve.totals), (SUMS,), np.float64)
    for _ in range(solve.burst):
        solve.at_f = -1
        solve.at_f = _free(solve)
        step.f = solve.states + solve.at_f * solve.state_bytes
        step.slot = solve.next_slot
        step.held = min(solve.in_use + 1, solve.memory) if step.has_last else 0
        _take_step(solve)
        solve.steps += 1
        solve.status = _observe(solve, totals)
        if solve.status != RUNNING:
            return
        solve.at_value = solve.at_f
        _next(solve, totals)
        if solve.steps == solve.max_steps:
            solve.status = BUDGET
            return


@cache
def advance() -> Any:
    """Compile the C function that takes up to `burst` steps of a solve."""

    def kernel(pointer):  # type: ignore[no-untyped-def]
        solve = carray(pointer, 1)[0]
        if add_at(solve.team + 8 * ENTERED, 1) == 0:
            _lead(solve)
            add_at(solve.team + 8 * GATE, -(1 << 62))
        else:
            follow(solve)

    return cached_on_disk(cfunc, types.void(types.CPointer(numba.from_dtype(SOLVE))))(kernel)
