"""The truth about streams: a script's logits in one forward pass, and what a changed token changes.

In come a model's weights and a `Script` with its explicit mask and positions; no cache, page or
view is involved. Shape letters: N tokens, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from engine.kernels.threads import torch_threads
from engine.models.config import ModelConfig
from engine.models.reference import dense
from engine.reasoning.streams.script import Script


def from_scratch(
    config: ModelConfig, weights: Mapping[str, Tensor], script: Script
) -> np.ndarray:  # fmt: skip
    """logits_NV of every token of the script. A model with paths takes streams for paths."""
    # Small forwards are done before a busy machine has woken a second thread.
    with torch.inference_mode(), torch_threads(1):
        logits_BTV = dense(
            config,
            weights,
            torch.from_numpy(script.tokens_N)[None],
            positions_BT=torch.from_numpy(script.positions_N)[None],
            visible_BTS=torch.from_numpy(script.visible_NN)[None],
            paths_BT=torch.from_numpy(script.stream_N)[None] if config.paths else None,
        )
    found: np.ndarray = logits_BTV[0].numpy()
    return found


def changed(
    config: ModelConfig, weights: Mapping[str, Tensor], script: Script, place: int, token: int,
    before_NV: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Whether each token's logits differ in any bit once the token at `place` is another.

    `before_NV`: the script's own logits from scratch.
    """
    tokens_N = script.tokens_N.copy()
    tokens_N[place] = token
    after_NV = from_scratch(config, weights, replace(script, tokens_N=tokens_N))
    differ: np.ndarray = (before_NV != after_NV).any(-1)
    return differ
