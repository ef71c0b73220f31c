"""The operator's face of sampling: tensors in, tokens and their log-probabilities out.

Shape letters: R rows, V vocabulary.
"""

import numpy as np
import torch
from torch import Tensor

from engine.kernels.sample import reference


def wishes(
    temperature_R: Tensor,
    top_k_R: Tensor,
    top_p_R: Tensor,
    min_p_R: Tensor,
    seed_R: Tensor,
    position_R: Tensor,
) -> reference.Wishes:
    """How each row is drawn, as numpy columns."""
    columns = (temperature_R, top_k_R, top_p_R, min_p_R, seed_R, position_R)
    return reference.Wishes(*[np.ascontiguousarray(c.cpu().numpy()) for c in columns])


def draw(
    logits_RV: Tensor,
    temperature_R: Tensor,
    top_k_R: Tensor,
    top_p_R: Tensor,
    min_p_R: Tensor,
    seed_R: Tensor,
    position_R: Tensor,
) -> tuple[Tensor, Tensor]:
    """(token_R in int32, logprob_R in float32 or float64 with the logits).

    Temperature 0 takes the likeliest; else a draw from softmax at the temperature, cut by top-k,
    then top-p, then min-p, that depends on seed and position only. The log-probability is the
    model's own: of the uncut softmax at temperature 1.
    """
    wide = torch.promote_types(logits_RV.dtype, torch.float32)
    logits_RV = logits_RV.to(wide)
    wish = wishes(temperature_R, top_k_R, top_p_R, min_p_R, seed_R, position_R)
    token_R = torch.from_numpy(reference.sample(logits_RV.cpu().numpy(), wish))
    token_R = token_R.to(logits_RV.device)
    logprob_RV = logits_RV.log_softmax(-1)
    return token_R, logprob_RV.gather(-1, token_R.long()[:, None])[:, 0]
