"""What a pass through feed-forwards of two sizes really cost: counted from what its tokens took."""

import numpy as np
import torch
from torch import Tensor

from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.inference.executors.step_spans import covered
from engine.inference.requests.step import Result
from engine.models.config import ModelConfig
from engine.models.duo.routes import BIG, SMALL, counts
from engine.models.footprint import MLP, SMALL_MLP
from engine.models.kv import BYTES


def tell_modules(result: Result, work: ForwardWork, shape: Shape, taken: list[Tensor]) -> None:
    """Put what each token took into `result`, and its flops and bytes in place of a mean step's."""
    expected = covered(work.works(shape), (MLP, SMALL_MLP))
    flops, moved = module_work(work.config, counts(taken), BYTES[work.dtype])
    result.flops += flops - expected[0]
    result.bytes += moved - expected[1]
    result.routes_TL = torch.stack(taken, 1).cpu().numpy().astype(np.int8)


def module_work(config: ModelConfig, counts_LM: list[list[int]], width: int) -> tuple[float, float]:
    """Flops of the modules' products, and bytes of their weights, inputs and outputs, of a pass in
    which so many tokens took each, numbers of `width` bytes: a module that nobody took costs
    nothing."""
    assert config.duo is not None
    flops = moved = 0.0
    for by_module in counts_LM:
        for which, inner in ((SMALL, config.duo.small), (BIG, config.width)):
            tokens, products = by_module[which], 3 if config.gated else 2
            numbers = products * inner * config.hidden
            flops += 2.0 * tokens * numbers
            moved += width * (numbers + tokens * products * (inner + config.hidden)) * bool(tokens)
    return flops, moved
