"""Token index (lightning indexer of DeepSeek-V3.2-Exp, arXiv 2512.02556, section 2.1): scores all
tokens of a sequence cheaply and keeps the best, to which alone attention goes.

The score of token s for query t is the sum over index heads of w_th · relu(q_th · k_s).
Shape letters: B sequences, T new tokens, S tokens seen, H heads, D index size, X what attention
reads of a token, K tokens kept, P pages, Z tokens of a page.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from engine.kernels.recurrent.state import float32_at_least


def scores(q_BTHD: Tensor, k_BSD: Tensor, weight_BTH: Tensor) -> Tensor:
    """score_BTS in float32 at least, of tokens that are seen or not."""
    heads, size = q_BTHD.shape[-2:]
    q_BTHD, k_BSD = float32_at_least(q_BTHD), float32_at_least(k_BSD)
    each_BTHS = torch.einsum("bthd,bsd->bths", q_BTHD, k_BSD) * size**-0.5
    weight_BTH = float32_at_least(weight_BTH) * heads**-0.5
    return torch.einsum("bth,bths->bts", weight_BTH, each_BTHS.relu())


def best(score_BTS: Tensor, hidden_BTS: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    """(index_BTK, seen_BTK): the `kept` best of the tokens that are not hidden, or all of them, in
    the order they stand in.

    Many score nothing at all; of equals the first are kept, so that a choice hangs on what is seen
    alone, not on how many tokens are hidden beside it.
    """
    score_BTS = score_BTS.masked_fill(hidden_BTS | score_BTS.isnan(), float("-inf"))
    kept = min(kept, score_BTS.shape[-1])
    least_BT1 = score_BTS.topk(kept, dim=-1).values[..., -1:]
    above_BTS, equal_BTS = score_BTS > least_BT1, score_BTS == least_BT1
    room_BT1 = kept - above_BTS.sum(-1, keepdim=True)
    kept_BTS = above_BTS | equal_BTS & (equal_BTS.cumsum(-1) <= room_BT1)
    index_BTK = kept_BTS.nonzero()[:, -1].view(*score_BTS.shape[:-1], kept)
    return index_BTK, score_BTS.gather(-1, index_BTK) > float("-inf")


def sequences(
    start_B1: np.ndarray, context_B: np.ndarray, table_BP: np.ndarray, each: bool = False
) -> Iterator[tuple[slice, int, Tensor, Tensor]]:
    """Each sequence's new tokens, how many tokens it sees, their pages, and what is hidden_TS.
    `each`: one of its new tokens after the other, with the tokens that this one sees."""
    for b, context in enumerate(context_B.tolist()):
        first, stop = int(start_B1[b]), int(start_B1[b + 1])
        table = torch.from_numpy(table_BP[b][table_BP[b] >= 0].astype(np.int64))
        for new in [slice(t, t + 1) for t in range(first, stop)] if each else [slice(first, stop)]:
            seen = context - (stop - new.stop)
            place_T = torch.arange(seen - (new.stop - new.start), seen)
            yield new, seen, table, torch.arange(seen) > place_T[:, None]


def attend_to_best(
    q_THX: Tensor,
    pages_PZ1X: Tensor,
    index: tuple[Tensor, Tensor, Tensor],
    batch: tuple[np.ndarray, np.ndarray, np.ndarray],
    scale: float,
    kept: int,
    each: bool = False,
) -> Tensor:
    """o_THX of queries over what each keeps; a token is key and value at once.

    `index`: q_THD, weight_TH and the pages of keys [P, Z, 1, D] to choose by. `batch`: starts,
    contexts and tables of the sequences; `each` of their tokens by itself, so that the others do
    not change its bits.
    """
    q_THD, weight_TH, keys_PZ1D = index
    o_THX = torch.empty_like(q_THX)
    for new, context, pages, hidden_TS in sequences(*batch, each):
        k_SD, held_SX = (
            paged[pages.to(paged.device)].flatten(0, 2)[:context].to(q_THX.dtype)
            for paged in (keys_PZ1D, pages_PZ1X)
        )
        score_1TS = scores(q_THD[None, new], k_SD[None], weight_TH[None, new])
        index_1TK, seen_1TK = best(score_1TS, hidden_TS.to(k_SD.device)[None], kept)
        held_TKX = held_SX[index_1TK[0]]
        each_THK = torch.einsum("thx,tkx->thk", q_THX[new], held_TKX) * scale
        each_THK = each_THK.masked_fill(~seen_1TK[0][:, None], float("-inf"))
        share_THK = float32_at_least(each_THK).softmax(-1).to(held_TKX.dtype)
        o_THX[new] = torch.einsum("thk,tkx->thx", share_THK, held_TKX)
    return o_THX
