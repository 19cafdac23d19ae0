"""Vectors of rows: instructions with which a kernel computes 16 rows of a narrow matrix at once.

A matrix with few columns does not fill vector registers along its rows. So the fused kernels take a *tile* of `lanes`
rows (64 bytes of one column: 16 rows in float32, 8 in float64) and hold each column of the tile in one `Vector`. A tile
is then a tuple of vectors, called *columns* here. A product with a small weight, an activation and a softmax are
operations between whole columns, without sums across the lanes of a register.
"""

from collections.abc import Callable, Sequence
from math import factorial, log
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from lignn.propagation.intrinsics import INT32, Vector

TILE_BYTES = 64
"""Bytes of one column of a tile: one AVX-512 register, two of AVX2."""

_FUSED = ("contract",)  # a multiplication and an addition may become one instruction


def _columns(kind: Any, count: int) -> types.UniTuple:
    return types.UniTuple(Vector(kind, 8 * TILE_BYTES // kind.bitwidth), count)


def _unpack(builder: Any, columns: ir.Value, count: int) -> list[ir.Value]:
    return [builder.extract_value(builder.extract_value(columns, j), 0) for j in range(count)]


def _pack(context: Any, builder: Any, kind: types.UniTuple, parts: Sequence[ir.Value]) -> ir.Value:
    whole = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for j, part in enumerate(parts):
        whole = builder.insert_value(whole, part, (j, 0))
    return whole


def _constant(like: ir.Value, value: float) -> ir.Constant:
    return ir.Constant(like.type, [value] * like.type.count)


class _Place:
    """The elements of an array from `start` on."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: ir.Value, start: ir.Value) -> None:
        self.builder, self.start, self.align = builder, start, kind.dtype.bitwidth // 8
        self.data = context.make_array(kind)(context, builder, array).data
        self.lanes = TILE_BYTES // self.align

    def _pointer(self, offset: int) -> ir.Value:
        return self.builder.gep(self.data, [self.builder.add(self.start, self.start.type(offset))])

    def scalar(self, offset: int) -> ir.Value:
        """Return the element at `start + offset` in all lanes of a vector."""
        undefined = ir.Constant(ir.VectorType(self.data.type.pointee, self.lanes), ir.Undefined)
        single = self.builder.insert_element(undefined, self.builder.load(self._pointer(offset)), INT32(0))
        return self.builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(INT32, self.lanes), None))

    def _vector(self, offset: int) -> ir.Value:
        kind = ir.VectorType(self.data.type.pointee, self.lanes)
        return self.builder.bitcast(self._pointer(offset), kind.as_pointer())

    def load(self, offset: int = 0) -> ir.Value:
        """Return the vector of elements that begins at `start + offset`."""
        loaded = self.builder.load(self._vector(offset))
        loaded.align = self.align
        return loaded

    def store(self, value: ir.Value, offset: int = 0) -> None:
        """Store a vector from `start + offset` on."""
        self.builder.store(value, self._vector(offset)).align = self.align


def _multiply_add(builder: Any, left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
    return builder.fadd(builder.fmul(left, right, flags=_FUSED), total, flags=_FUSED)


def _rearranged(builder: Any, parts: Sequence[ir.Value], source: Callable[[int, int], tuple[int, int]]) -> list[Any]:
    """Return vectors whose lane `i` of vector `j` is lane `l` of part `k`, where `k, l = source(j, i)`."""
    lanes = parts[0].type.count
    result = []
    for j in range(len(parts)):
        places = [source(j, i) for i in range(lanes)]
        vector = ir.Constant(parts[0].type, ir.Undefined)
        for k in sorted({part for part, _ in places}):
            mask = [lanes + lane if part == k else i for i, (part, lane) in enumerate(places)]
            vector = builder.shuffle_vector(vector, parts[k], ir.Constant(ir.VectorType(INT32, lanes), mask))
        result.append(vector)
    return result


@intrinsic(prefer_literal=True)
def load_columns(_typing: Any, array: Any, start: Any, count: Any) -> Any:
    """Return the columns of the tile whose `count` columns lie row by row from `array[start]` on."""
    number = count.literal_value
    kind = _columns(array.dtype, number)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        elements = _Place(context, builder, array, *arguments[:2])
        lanes = kind.dtype.width
        rows = [elements.load(k * lanes) for k in range(number)]
        return _pack(context, builder, kind, _rearranged(builder, rows, lambda j, i: divmod(i * number + j, lanes)))

    return kind(array, start, count), generate


@intrinsic
def store_columns(_typing: Any, columns: Any, array: Any, start: Any) -> Any:
    """Store the columns of a tile row by row from `array[start]` on."""
    count, lanes = len(columns), columns.dtype.width

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        elements = _Place(context, builder, array, *arguments[1:])
        parts = _unpack(builder, arguments[0], count)

        def source(j: int, i: int) -> tuple[int, int]:
            row, column = divmod(j * lanes + i, count)
            return column, row

        for k, vector in enumerate(_rearranged(builder, parts, source)):
            elements.store(vector, k * lanes)
        return context.get_dummy_value()

    return types.void(columns, array, start), generate


@intrinsic(prefer_literal=True)
def zero_columns(_typing: Any, array: Any, count: Any) -> Any:
    """Return `count` columns of zeros of the array's type."""
    kind = _columns(array.dtype, count.literal_value)

    def generate(context: Any, _builder: Any, _signature: Any, _arguments: Any) -> ir.Value:
        return ir.Constant(context.get_value_type(kind), None)

    return kind(array, count), generate


@intrinsic
def load(_typing: Any, columns: Any, array: Any, start: Any) -> Any:
    """Return `array[start : start + lanes]` as one vector, as long as those of `columns`."""
    vector = columns.dtype

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        elements = _Place(context, builder, array, *arguments[1:])
        return builder.insert_value(ir.Constant(context.get_value_type(vector), ir.Undefined), elements.load(), 0)

    return vector(columns, array, start), generate


@intrinsic
def add_weighted(_typing: Any, vector: Any, columns: Any, array: Any, start: Any) -> Any:
    """Return `vector + Σ_k columns[k] * array[start + k]`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        elements = _Place(context, builder, array, *arguments[2:])
        total = builder.extract_value(arguments[0], 0)
        for k, column in enumerate(_unpack(builder, arguments[1], len(columns))):
            weight = elements.scalar(k)
            total = _multiply_add(builder, column, weight, total)
        return builder.insert_value(arguments[0], total, 0)

    return vector(vector, columns, array, start), generate


@intrinsic
def add_outer(_typing: Any, columns: Any, vector: Any, array: Any, start: Any) -> Any:
    """Return the columns `columns[k] + vector * array[start + k]`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        elements = _Place(context, builder, array, *arguments[2:])
        value = builder.extract_value(arguments[1], 0)
        parts = [
            _multiply_add(builder, value, elements.scalar(k), column)
            for k, column in enumerate(_unpack(builder, arguments[0], len(columns)))
        ]
        return _pack(context, builder, columns, parts)

    return columns(columns, vector, array, start), generate


@intrinsic
def add_to_columns(_typing: Any, columns: Any, array: Any) -> Any:
    """Return the columns `columns[k] + array[k]`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        elements = _Place(context, builder, array, arguments[1], ir.Constant(ir.IntType(64), 0))
        parts = [
            builder.fadd(column, elements.scalar(k))
            for k, column in enumerate(_unpack(builder, arguments[0], len(columns)))
        ]
        return _pack(context, builder, columns, parts)

    return columns(columns, array), generate


@intrinsic
def relu(_typing: Any, vector: Any) -> Any:
    """Return the vector with negative lanes set to zero; NaN stays."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        value = builder.extract_value(arguments[0], 0)
        zero = _constant(value, 0.0)
        positive = builder.select(builder.fcmp_ordered("<", value, zero), zero, value)
        return builder.insert_value(arguments[0], positive, 0)

    return vector(vector), generate


@intrinsic
def multiply(_typing: Any, vector: Any, array: Any, start: Any) -> Any:
    """Return `vector * array[start : start + lanes]`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        elements = _Place(context, builder, array, *arguments[1:])
        product = builder.fmul(builder.extract_value(arguments[0], 0), elements.load())
        return builder.insert_value(arguments[0], product, 0)

    return vector(vector, array, start), generate


@intrinsic
def positive(_typing: Any, vector: Any) -> Any:
    """Return 1 in the lanes that are positive, and 0 in the others."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        value = builder.extract_value(arguments[0], 0)
        zero = _constant(value, 0.0)
        mask = builder.select(builder.fcmp_ordered(">", value, zero), _constant(value, 1.0), zero)
        return builder.insert_value(arguments[0], mask, 0)

    return vector(vector), generate


@intrinsic
def softmax(_typing: Any, columns: Any) -> Any:
    """Return the softmax over the columns, for each lane."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        parts = _unpack(builder, arguments[0], len(columns))
        peak = parts[0]
        for part in parts[1:]:
            peak = builder.select(builder.fcmp_ordered(">", part, peak), part, peak)
        powers = [_exp(builder, builder.fsub(part, peak)) for part in parts]
        total = powers[0]
        for power in powers[1:]:
            total = builder.fadd(total, power)
        share = builder.fdiv(_constant(total, 1.0), total)
        return _pack(context, builder, columns, [builder.fmul(power, share) for power in powers])

    return columns(columns), generate


@intrinsic
def sigmoid(_typing: Any, columns: Any) -> Any:
    """Return `1 / (1 + exp(-x))` for all entries of the columns."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        results = []
        for part in _unpack(builder, arguments[0], len(columns)):
            one = _constant(part, 1.0)
            power = _exp(builder, builder.fsub(_constant(part, 0.0), part))
            results.append(builder.fdiv(one, builder.fadd(one, power)))
        return _pack(context, builder, columns, results)

    return columns(columns), generate


@intrinsic
def softmax_gradient(_typing: Any, columns: Any, gradient: Any) -> Any:
    """Return `p ∘ (g - ⟨p, g⟩)` for the columns p of a softmax and the columns g of a gradient."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        shares, gradients = (_unpack(builder, argument, len(columns)) for argument in arguments)
        mean = _constant(shares[0], 0.0)
        for p, g in zip(shares, gradients, strict=True):
            mean = _multiply_add(builder, p, g, mean)
        parts = [builder.fmul(p, builder.fsub(g, mean)) for p, g in zip(shares, gradients, strict=True)]
        return _pack(context, builder, columns, parts)

    return columns(columns, gradient), generate


def _exp(builder: Any, x: ir.Value) -> ir.Value:
    """Return `exp(x)` to about one unit of rounding, with arguments limited to those of normal results.

    `x = n ln 2 + r` with an integer n and `|r| ≤ ln 2 / 2`; exp(r) is its Taylor polynomial, and 2ⁿ is put together
    from bits. `ln 2` is subtracted in two parts, the first with few bits, so that `n` times it is exact.
    """
    double = isinstance(x.type.element, ir.DoubleType)
    bits, mantissa, degree, largest = (64, 52, 13, 708.0) if double else (32, 23, 7, 87.0)
    high = 0.693145751953125  # ln 2 to 17 bits
    for bound, order in ((-largest, "<"), (largest, ">")):
        limit = _constant(x, bound)
        x = builder.select(builder.fcmp_ordered(order, x, limit), limit, x)
    magic = _constant(x, 1.5 * 2.0**mantissa)  # a number this large has no bits for a fraction
    shifted = builder.fadd(builder.fmul(x, _constant(x, 1 / log(2))), magic)
    n = builder.fsub(shifted, magic)
    r = _multiply_add(builder, n, _constant(x, -high), x)
    r = _multiply_add(builder, n, _constant(x, -_LN2_LOW), r)
    power = _constant(x, 1 / factorial(degree))
    for k in reversed(range(degree)):
        power = _multiply_add(builder, power, r, _constant(x, 1 / factorial(k)))
    integer = ir.VectorType(ir.IntType(bits), x.type.count)
    exponent = builder.shl(builder.bitcast(shifted, integer), ir.Constant(integer, [mantissa] * x.type.count))
    result = builder.bitcast(builder.add(builder.bitcast(power, integer), exponent), x.type)
    return builder.select(builder.fcmp_unordered("uno", x, x), x, result)


_LN2_LOW = 1.4286068203094172321e-6
"""`ln 2 - 0.693145751953125`."""
