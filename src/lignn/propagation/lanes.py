"""Vectors of a fixed width for Numba, and what kernels do with them.

Numba's vectoriser does not keep the sums of a row in vector registers by itself. `Lanes` gives it vectors whose width
is known when a kernel is compiled, which LLVM turns into AVX-512, AVX2 or NEON instructions.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

INT32 = ir.IntType(32)


class Lanes(types.Type):
    """Numba type of a vector with a fixed number of elements, held as vectors whose lengths are powers of two."""

    def __init__(self, dtype: types.Float, width: int) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(f"Lanes({dtype}, {width})")

    @property
    def parts(self) -> list[tuple[int, ir.VectorType]]:
        """Offset and LLVM type of each power of two in the width, the largest first (LLVM splits 40 badly)."""
        element = ir.FloatType() if self.dtype == types.float32 else ir.DoubleType()
        offset, parts = 0, []
        for bit in reversed(range(self.width.bit_length())):
            if self.width >> bit & 1:
                parts.append((offset, ir.VectorType(element, 1 << bit)))
                offset += 1 << bit
        return parts


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.LiteralStructType([vector for _, vector in lanes.parts]))


def pointer_to(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, offset: Any, target: ir.Type) -> ir.Value:
    """The address of `array[offset]`, as one of `target`."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), target.as_pointer())


@intrinsic(prefer_literal=True)
def zeros(_typing: Any, array: Any, width: Any) -> Any:
    """`width` zeros of the array's type."""
    lanes = Lanes(array.dtype, width.literal_value)

    def generate(context: Any, _builder: Any, _signature: Any, _arguments: Any) -> ir.Value:
        return ir.Constant(context.get_value_type(lanes), None)

    return lanes(array, width), generate


@intrinsic
def add(_typing: Any, left: Any, right: Any) -> Any:
    """`left + right`."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        total = arguments[0]
        for part in range(len(left.parts)):
            first, second = (builder.extract_value(argument, part) for argument in arguments)
            total = builder.insert_value(total, builder.fadd(first, second), part)
        return total

    return left(left, right), generate


@intrinsic
def add_scaled(_typing: Any, lanes: Any, scale: Any, array: Any, offset: Any) -> Any:
    """`lanes + scale * array[offset : offset + width]`, fused where the processor can."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        total, factor, data, start = arguments
        for part, (shift, vector) in enumerate(lanes.parts):
            pointer = pointer_to(context, builder, array, data, builder.add(start, start.type(shift)), vector)
            loaded = builder.load(pointer)
            loaded.align = array.dtype.bitwidth // 8
            undefined = ir.Constant(vector, ir.Undefined)
            single = builder.insert_element(undefined, factor, INT32(0))
            same = ir.Constant(ir.VectorType(INT32, vector.count), None)
            product = builder.fmul(builder.shuffle_vector(single, undefined, same), loaded, flags=["contract"])
            summed = builder.fadd(builder.extract_value(total, part), product, flags=["contract"])
            total = builder.insert_value(total, summed, part)
        return total

    return lanes(lanes, scale, array, offset), generate


@intrinsic
def store(_typing: Any, lanes: Any, array: Any, offset: Any) -> Any:
    """`array[offset : offset + width] = lanes`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        value, data, start = arguments
        for part, (shift, vector) in enumerate(lanes.parts):
            pointer = pointer_to(context, builder, array, data, builder.add(start, start.type(shift)), vector)
            builder.store(builder.extract_value(value, part), pointer).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(lanes, array, offset), generate


@intrinsic
def prefetch(_typing: Any, lanes: Any, array: Any, offset: Any) -> Any:
    """Ask for the cache lines of `array[offset : offset + width]`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        _, data, start = arguments
        byte = ir.IntType(8)
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), INT32, INT32, INT32])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        for shift in range(0, lanes.width, 64 * 8 // array.dtype.bitwidth):
            pointer = pointer_to(context, builder, array, data, builder.add(start, start.type(shift)), byte)
            builder.call(instruction, [pointer, INT32(0), INT32(3), INT32(1)])  # to read, keep close, data
        return context.get_dummy_value()

    return types.void(lanes, array, offset), generate


@intrinsic
def dot(_typing: Any, lanes: Any, array: Any, offset: Any) -> Any:
    """Product of the lanes and `array[offset : offset + width]`, summed by halves."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        value, data, start = arguments
        element = context.get_value_type(array.dtype)
        total = ir.Constant(element, 0.0)
        for part, (shift, vector) in enumerate(lanes.parts):
            loaded = builder.load(
                pointer_to(context, builder, array, data, builder.add(start, start.type(shift)), vector)
            )
            loaded.align = array.dtype.bitwidth // 8
            product = builder.fmul(builder.extract_value(value, part), loaded)
            name = f"llvm.vector.reduce.fadd.v{vector.count}f{array.dtype.bitwidth}"
            kind = ir.FunctionType(element, [element, vector])
            instruction = cgutils.get_or_insert_function(builder.module, kind, name)
            total = builder.call(instruction, [total, product], fastmath=["reassoc"])
        return total

    return array.dtype(lanes, array, offset), generate
