"""Product by the library torch calls on the processor: the weight as it lies."""

from torch import Tensor, nn

from engine.kernels.matmul.pack import Packed
from engine.kernels.operator import Variant


def matmul(x_MK: Tensor, weight_NK: Tensor) -> Tensor:
    """y_MN = x · Wᵀ in float32; operands of one half-precision type are multiplied in it."""
    if x_MK.dtype == weight_NK.dtype:
        return nn.functional.linear(x_MK, weight_NK).float()
    return nn.functional.linear(x_MK.float(), weight_NK.float())


VARIANT = Variant(
    name="library_cpu",
    about="torch's own product",
    device="cpu",
    call=matmul,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
    refuses=lambda given: (
        "takes a weight that is not packed" if isinstance(given["weight_NK"], Packed) else ""
    ),
)
