"""Instructions that Numba lacks and the kernels need: vectors of a fixed width, addresses, and an atomic counter.

Numba does not keep the sums of a row in vector registers by itself. The width of a `Vector` is known when a kernel is
compiled, so that LLVM turns operations on it into AVX-512, AVX2 or NEON instructions.
"""

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

BYTE, INT32, INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


class Vector(types.Type):
    """Numba type of a vector with a fixed number of elements, stored as parts whose widths are powers of two."""

    def __init__(self, dtype: types.Float, width: int) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(f"Vector({dtype}, {width})")

    @property
    def parts(self) -> list[tuple[int, ir.VectorType]]:
        """Offset and LLVM type of each part, the widest first; LLVM itself splits widths such as 40 badly."""
        element = ir.FloatType() if self.dtype == types.float32 else ir.DoubleType()
        offset, parts = 0, []
        for bit in reversed(range(self.width.bit_length())):
            if self.width >> bit & 1:
                parts.append((offset, ir.VectorType(element, 1 << bit)))
                offset += 1 << bit
        return parts


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, ir.LiteralStructType([part for _, part in vector.parts]))


class _Elements:
    """The elements `array[start], array[start + 1], …`, from which a vector is loaded or to which it is stored."""

    def __init__(self, context: Any, builder: ir.IRBuilder, kind: Any, array: ir.Value, start: ir.Value) -> None:
        self.builder, self.start, self.align = builder, start, kind.dtype.bitwidth // 8
        self.data = context.make_array(kind)(context, builder, array).data

    def address(self, offset: int, kind: ir.Type) -> ir.Value:
        """Return the address of `array[start + offset]` as a pointer to an LLVM type."""
        place = self.builder.add(self.start, self.start.type(offset))
        return self.builder.bitcast(self.builder.gep(self.data, [place]), kind.as_pointer())

    def load(self, vector: Vector) -> Iterator[tuple[int, ir.Value]]:
        """Yield the number of each part of a vector and the elements that belong to it."""
        for number, (offset, part) in enumerate(vector.parts):
            loaded = self.builder.load(self.address(offset, part))
            loaded.align = self.align
            yield number, loaded


@intrinsic(prefer_literal=True)
def zeros(_typing: Any, array: Any, width: Any) -> Any:
    """Return a vector of `width` zeros of the array's type."""
    vector = Vector(array.dtype, width.literal_value)

    def generate(context: Any, _builder: Any, _signature: Any, _arguments: Any) -> ir.Value:
        return ir.Constant(context.get_value_type(vector), None)

    return vector(array, width), generate


@intrinsic
def add(_typing: Any, left: Any, right: Any) -> Any:
    """Return `left + right`."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        total = arguments[0]
        for number in range(len(left.parts)):
            first, second = (builder.extract_value(argument, number) for argument in arguments)
            total = builder.insert_value(total, builder.fadd(first, second), number)
        return total

    return left(left, right), generate


def _repeated(builder: ir.IRBuilder, number: ir.Value, kind: ir.VectorType) -> ir.Value:
    """Return a vector whose elements are all one number."""
    undefined = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(undefined, number, INT32(0))
    return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(INT32, kind.count), None))


@intrinsic
def add_scaled(_typing: Any, vector: Any, scale: Any, array: Any, start: Any) -> Any:
    """Return `vector + scale * array[start : start + width]`, with fused operations if the processor has them."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        total, factor, data, first = arguments
        for number, loaded in _Elements(context, builder, array, data, first).load(vector):
            product = builder.fmul(_repeated(builder, factor, loaded.type), loaded, flags=["contract"])
            summed = builder.fadd(builder.extract_value(total, number), product, flags=["contract"])
            total = builder.insert_value(total, summed, number)
        return total

    return vector(vector, scale, array, start), generate


@intrinsic
def dot(_typing: Any, vector: Any, array: Any, start: Any) -> Any:
    """Return the inner product of the vector and `array[start : start + width]`, summed pairwise."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        value, data, first = arguments
        element = context.get_value_type(array.dtype)
        total = ir.Constant(element, 0.0)
        for number, loaded in _Elements(context, builder, array, data, first).load(vector):
            product = builder.fmul(builder.extract_value(value, number), loaded)
            name = f"llvm.vector.reduce.fadd.v{loaded.type.count}f{array.dtype.bitwidth}"
            kind = ir.FunctionType(element, [element, loaded.type])
            instruction = cgutils.get_or_insert_function(builder.module, kind, name)
            total = builder.call(instruction, [total, product], fastmath=["reassoc"])
        return total

    return array.dtype(vector, array, start), generate


@intrinsic
def store(_typing: Any, vector: Any, array: Any, start: Any) -> Any:
    """Set `array[start : start + width]` to the vector."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        value, data, first = arguments
        elements = _Elements(context, builder, array, data, first)
        for number, (offset, part) in enumerate(vector.parts):
            builder.store(builder.extract_value(value, number), elements.address(offset, part)).align = elements.align
        return context.get_dummy_value()

    return types.void(vector, array, start), generate


@intrinsic
def prefetch(_typing: Any, vector: Any, array: Any, start: Any) -> Any:
    """Ask the processor for the cache lines of `array[start : start + width]`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        elements = _Elements(context, builder, array, *arguments[1:])
        kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT32, INT32, INT32])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        for offset in range(0, vector.width, 64 // elements.align):
            # for reading (0), to be kept in all caches (3), data and not instructions (1)
            builder.call(instruction, [elements.address(offset, BYTE), INT32(0), INT32(3), INT32(1)])
        return context.get_dummy_value()

    return types.void(vector, array, start), generate


@intrinsic
def count_up(_typing: Any, counter: Any) -> Any:
    """Add one to the 64-bit integer at an address, atomically, and return its value from before."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        pointer = builder.bitcast(arguments[0], INT64.as_pointer())
        return builder.atomic_rmw("add", pointer, INT64(1), ordering="monotonic")

    return types.int64(counter), generate


@intrinsic
def as_pointer(_typing: Any, address: Any) -> Any:
    """Return an integer address as a pointer."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        return builder.inttoptr(arguments[0], BYTE.as_pointer())

    return types.voidptr(address), generate
