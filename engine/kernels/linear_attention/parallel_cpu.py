"""The parallel form of gated linear attention on the CPU: every score, no state passed on.

It is the chunkwise form with one chunk as long as the sequence, so its work grows with the square
of the length.
"""

from torch import Tensor

from engine.kernels.linear_attention.backward import attend
from engine.kernels.linear_attention.chunkwise_cpu import SUB_CHUNK, form
from engine.kernels.operator import Variant


def gated_linear_attention(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    log_gate_BHTK: Tensor,
    state_BHKV: Tensor,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """As the reference, in float32."""
    whole = max(-(-q_BHTK.shape[2] // SUB_CHUNK), 1) * SUB_CHUNK
    return attend(form(whole, SUB_CHUNK), q_BHTK, k_BHTK, v_BHTV, log_gate_BHTK, state_BHKV, scale)


VARIANT = Variant(
    name="parallel_cpu",
    about="all scores at once, quadratic in length; a head a task",
    device="cpu",
    call=gated_linear_attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=1,
    gradients=True,
)
