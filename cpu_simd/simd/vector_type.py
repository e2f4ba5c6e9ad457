"""The Numba type of SIMD vectors, imported when a kernel is compiled."""

from llvmlite import ir
from numba import types
from numba.extending import models, register_model


class VecType(types.Type):  # type: ignore[misc]
    """A vector of `lanes` integers of `bits` bits; signedness is a property of the operations, not of the type."""

    def __init__(self, bits: int, lanes: int) -> None:
        self.bits = bits
        self.lanes = lanes
        super().__init__(name=f"Vec(i{bits}x{lanes})")

    @property
    def ir(self) -> ir.VectorType:
        return ir.VectorType(ir.IntType(self.bits), self.lanes)


@register_model(VecType)
class _VecModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm, fe_type):  # type: ignore[no-untyped-def]
        super().__init__(dmm, fe_type, fe_type.ir)
