"""Rounding of a model's layers: codes whose errors others make up, and the loss that is left.

Shape letters: N outputs, K inputs, M rows seen, C columns of a block, L levels, I numbers.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.limits import read_text
from engine.models.gathered import Cast
from engine.models.loading.find import find
from engine.models.reference import dense
from engine.models.text.tokenizer import Tokenizer
from engine.training.losses.evaluate import Linears, score

TOGETHER = 16  # windows in one forward pass
DAMP = 0.01  # of the mean second moment, added to each input's
SHRINKS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5)  # of a range, the best is taken
Product = Callable[[str, Tensor, Tensor], Tensor]  # of a layer's name, input and weight
# What a block of columns [N, C] may become: levels by row [N, L], and what is to be kept of them.
Fit = Callable[[Tensor], tuple[Tensor, Any]]


class RoundedModel:
    """A shipped model or a folder, and its own text, or that of the folder `text`: `seen`, that it
    may be calibrated on, and after it `stream`, windows of `length` tokens that judge it. Raises
    BadInput where weights or text are not there."""

    def __init__(self, name: str, windows: int, length: int, seen: int = 0, text: str = "") -> None:
        found = find(name)
        if found.folder is None:
            raise BadInput(f"model {name!r}: no weights; give a shipped model's name")
        beside = find(text).folder if text else found.folder
        if beside is None:
            raise BadInput(f"text of {text!r}: no folder; give a shipped model's name")
        file = beside / "validation.txt"
        if not file.is_file():
            raise BadInput(f"{file}: no such file; give a shipped model, or put a text there")
        self.config, self.length = found.config, length
        self.weights = dict(Cast(found.open().weights, torch.float32))
        count = seen + windows * length + 1
        read = read_text(file)[: 16 * count]
        ids = np.array(Tokenizer(found.folder).encode(read), np.int64)
        self.seen, self.stream = ids[:seen], ids[seen:count]

    def losses(self, called: Product) -> list[float]:
        """Nats a token of each window, every linear layer's product by `called`."""
        starts = range(0, len(self.stream) - 1, self.length)
        cuts = [self.stream[at : at + self.length + 1] for at in starts]
        with Linears(self.weights, called):
            return [score(self.config, self.weights, cut, self.length).loss for cut in cuts]

    def with_weights(self, changed: Mapping[str, Tensor]) -> np.ndarray:
        """Nats a token of each window with some weights in others' place; windows go together."""
        weights = self.weights | dict(changed)
        count = (len(self.stream) - 1) // self.length
        found = []
        for first in range(0, count, TOGETHER):
            starts = np.arange(first, min(first + TOGETHER, count)) * self.length
            ids_BT = torch.from_numpy(self.stream[starts[:, None] + np.arange(self.length + 1)])
            with torch.inference_mode():
                logits_BVT = dense(self.config, weights, ids_BT[:, :-1]).float().mT
            losses_BT = F.cross_entropy(logits_BVT, ids_BT[:, 1:], reduction="none")
            found.append(losses_BT.mean(1).numpy())
        return np.concatenate(found)


def moments(
    config: Any, weights: dict[str, Tensor], stream: np.ndarray, length: int
) -> dict[str, Tensor]:
    """Σ x xᵀ of what each linear layer is fed with."""
    found: dict[str, Tensor] = {}

    def watch(name: str, x: Tensor, weight: Tensor) -> Tensor:
        x_MK = x.reshape(-1, x.shape[-1])
        found[name] = found.get(name, torch.zeros(())) + x_MK.T @ x_MK
        return F.linear(x, weight)

    with Linears(weights, watch):
        score(config, weights, stream, length)
    return found


def factor(moments_KK: Tensor) -> Tensor:
    """The upper Cholesky factor of the inverse of second moments Σ x xᵀ, damped: by its rows the
    columns that are left take over what a column errs (GPTQ)."""
    damped = moments_KK.double().clone()
    diagonal = damped.diagonal()
    diagonal[diagonal == 0] = 1.0
    diagonal += DAMP * diagonal.mean()
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    return torch.linalg.cholesky(inverse, upper=True).float()


def nearest(values_NI: Tensor, levels_NL: Tensor) -> Tensor:
    """The index of each value's nearest level of its row."""
    sorted_NL, order_NL = levels_NL.sort(1)
    between_NL = (sorted_NL[:, 1:] + sorted_NL[:, :-1]) / 2
    return order_NL.gather(1, torch.searchsorted(between_NL, values_NI.contiguous()))


def compensated(weight_NK: Tensor, upper_KK: Tensor | None, columns: int, fit: Fit) -> tuple[
    Tensor, np.ndarray, list[Any],
]:  # fmt: skip
    """A weight block by block of columns: what it becomes, codes, and what each fit kept. With the
    Cholesky factor of the inverse moments (`factor`) errors go on to the columns after."""
    left_NK, held_NK = weight_NK.detach().float().clone(), torch.empty(weight_NK.shape)
    codes_NK = torch.empty(weight_NK.shape, dtype=torch.int64)
    kept = []
    for start in range(0, weight_NK.shape[1], columns):
        block = slice(start, min(start + columns, weight_NK.shape[1]))
        part_NC = left_NK[:, block]
        levels_NL, more = fit(part_NC)
        kept.append(more)
        if upper_KK is None:
            codes_NK[:, block] = nearest(part_NC, levels_NL)
            held_NK[:, block] = levels_NL.gather(1, codes_NK[:, block])
            continue
        rows_NC, inside_CC, errors_NC = part_NC.clone(), upper_KK[block, block], []
        own = inside_CC.diagonal().tolist()
        sorted_NL, order_NL = levels_NL.sort(1)
        between_NL = (sorted_NL[:, 1:] + sorted_NL[:, :-1]) / 2
        for c, divisor in enumerate(own):
            column_N1 = rows_NC[:, c : c + 1].contiguous()
            code_N1 = torch.searchsorted(between_NL, column_N1)
            value_N1 = sorted_NL.gather(1, code_N1)
            error_N1 = (column_N1 - value_N1).div_(divisor)
            if c + 1 < len(own):
                rows_NC[:, c + 1 :].addmm_(error_N1, inside_CC[c : c + 1, c + 1 :], alpha=-1)
            errors_NC.append(error_N1)
            codes_NK[:, start + c] = order_NL.gather(1, code_N1)[:, 0]
            held_NK[:, start + c] = value_N1[:, 0]
        left_NK[:, block.stop :] -= torch.cat(errors_NC, 1) @ upper_KK[block, block.stop :]
    return held_NK, codes_NK.to(torch.uint8).numpy(), kept


def even_fit(bits: int, searched: bool = True) -> Fit:
    """Levels that lie evenly, a scale and a zero for each row, its range the one of `SHRINKS` with
    the least squared error; not `searched`: from the smallest number to the largest."""
    steps = torch.arange(2.0**bits)

    def fit(part_NC: Tensor) -> tuple[Tensor, None]:
        low_N1 = part_NC.amin(1, keepdim=True).clamp_max(0)
        high_N1 = part_NC.amax(1, keepdim=True).clamp_min(0)
        least_N1, best_NL = torch.full_like(low_N1, torch.inf), low_N1 * steps
        for shrink in SHRINKS if searched else SHRINKS[:1]:
            scale_N1 = (shrink * (high_N1 - low_N1) / (2**bits - 1)).clamp_min(6e-8)
            scale_N1 = scale_N1.half().float()
            levels_NL = (steps - (-shrink * low_N1 / scale_N1).round()) * scale_N1
            codes_NC = nearest(part_NC, levels_NL)
            error_N1 = (part_NC - levels_NL.gather(1, codes_NC)).square().sum(1, keepdim=True)
            best_NL = torch.where(error_N1 < least_N1, levels_NL, best_NL)
            least_N1 = torch.minimum(error_N1, least_N1)
        return best_NL, None

    return fit


def decibels(truth: Tensor, found: Tensor) -> float:
    """Signal over error: ten for each factor of ten between their mean squares."""
    error = (found - truth).square().mean().clamp_min(1e-30)
    return float(10 * torch.log10(truth.square().mean() / error))
