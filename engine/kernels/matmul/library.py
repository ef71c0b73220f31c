"""Product by the library torch calls on a GPU, where both operands have one half-precision type."""

from torch import Tensor, nn

from engine.kernels.matmul.pack import Packed
from engine.kernels.operator import Arguments, Variant


def refuses(given: Arguments) -> str:
    """Mixed operands would be copied to float32 first."""
    x, weight = given["x_MK"], given["weight_NK"]
    if isinstance(weight, Packed):
        return "takes a weight that is not packed"
    return "" if weight.dtype == x.dtype else f"takes a weight in {x.dtype}, not {weight.dtype}"


def matmul(x_MK: Tensor, weight_NK: Tensor) -> Tensor:
    """y_MN = x · Wᵀ in x's type, added up in float32."""
    return nn.functional.linear(x_MK, weight_NK)


VARIANT = Variant(
    name="library",
    about="torch's own product (cuBLAS)",
    device="cuda",
    call=matmul,
    dtypes=("bfloat16", "float16"),
    rank=3,
    refuses=refuses,
)
