"""Attention forward by torch's own flash attention for processors, gradients by the tiles.

Its products are the vendor library's: without AVX-512 they are ahead of our tiles for large heads
of short sequences, unless a causal mask hides half of what its blocks of 512 keys compute. Computed
in float32; heads that share keys get copies of them.
"""

import torch
from torch import Tensor

from engine.kernels.attention.arguments import check
from engine.kernels.attention.gradients import Algorithm, Switches, Tensors
from engine.kernels.attention.tiles_cpu import backward
from engine.kernels.lanes import WIDE
from engine.kernels.operator import Arguments, Variant

LONG = 768  # queries of a sequence from which our tiles keep up


def forward(tensors: Tensors, switches: Switches) -> tuple[Tensor, Tensor]:
    """o_THE in q's dtype, lse_TH in float32; a sequence a call."""
    T, H, _ = tensors.q_THD.shape
    queries, keys = tensors.query_start_B1.tolist(), tensors.key_start_B1.tolist()
    if queries == [0, T] and keys[1] > 0 and T > 0:
        o_THE, lse_TH = _sequence(*tensors[:3], switches)
        return o_THE.to(tensors.q_THD.dtype), lse_TH
    o_THE = tensors.q_THD.new_zeros(T, H, tensors.v_SGE.shape[-1])
    lse_TH = torch.full((T, H), -torch.inf)
    for b in range(len(queries) - 1):
        rows, columns = slice(queries[b], queries[b + 1]), slice(keys[b], keys[b + 1])
        if rows.stop > rows.start and columns.stop > columns.start:
            given = tensors.q_THD[rows], tensors.k_SGD[columns], tensors.v_SGE[columns]
            o_THE[rows], lse_TH[rows] = _sequence(*given, switches)
    return o_THE, lse_TH


def _sequence(
    q_NHD: Tensor, k_MGD: Tensor, v_MGE: Tensor, switches: Switches
) -> tuple[Tensor, Tensor]:
    """o_NHE and lse_NH of one sequence."""
    share = q_NHD.shape[1] // k_MGD.shape[1]
    if share > 1:
        k_MGD, v_MGE = (x.repeat_interleave(share, 1) for x in (k_MGD, v_MGE))
    o_1HNE, lse_1HN = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *(x.float().transpose(0, 1)[None] for x in (q_NHD, k_MGD, v_MGE)),
        0.0,
        switches.causal,
        scale=switches.scale,
    )
    return o_1HNE[0].transpose(0, 1), lse_1HN[0].transpose(0, 1)


LIBRARY = Algorithm(forward, backward)


def _refuses(given: Arguments) -> str:
    if given.get("window") or given.get("softcap"):
        return "takes no window and no soft cap"
    if given["v_SGE"].shape[-1] != given["q_THD"].shape[-1]:
        return "takes values of the keys' size only"
    if not given.get("causal", True) or torch.equal(given["query_start_B1"], given["key_start_B1"]):
        return ""
    check(given)  # what fits nowhere is said before what does not fit here
    return "takes a causal mask from token 0 only"


def _yields(given: Arguments) -> bool:
    """Whether the tiles are ahead here, as measured with and without AVX-512."""
    if WIDE or given.get("causal", True) or given["q_THD"].shape[-1] < 128:
        return True
    longest = int(given["query_start_B1"].diff().max()) if len(given["query_start_B1"]) > 1 else 0
    return longest >= LONG


VARIANT = Variant(
    name="library_cpu",
    about="torch's own flash attention",
    device="cpu",
    call=LIBRARY.attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=3,
    gradients=True,
    refuses=_refuses,
    yields=_yields,
)
