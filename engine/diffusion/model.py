"""Masked-diffusion model: probabilities of every position of a text at once, masked ones among
them, by bidirectional attention over the whole text.

The transformer is that of `engine.models` whose tokens all see each other (LLaDA, arXiv
2502.09992). Beside it stands the joint itself, counted: a model that has nothing left to learn.

Shape letters: N texts, L positions of an answer, T tokens of prompt and answer, V vocabulary.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.diffusion.joints import VOCAB, Joint
from engine.models.config import ModelConfig
from engine.models.families import read_config
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.find import find
from engine.models.reference import dense

SHIPPED = "lists-diffusion-150k"
FOLDER = "diffusion"  # of the data: no model that writes from left to right lies there


class Predictor(Protocol):
    """Says what may stand at each position of answers of which some is revealed."""

    def __call__(self, joint: Joint, answers_NL: np.ndarray, revealed_NL: np.ndarray) -> np.ndarray:
        """p_NLV in float64, each position by itself."""


class Exact:
    """The marginals of the joint."""

    def __call__(self, joint: Joint, answers_NL: np.ndarray, revealed_NL: np.ndarray) -> np.ndarray:
        return joint.marginals(answers_NL, revealed_NL)


class Masked:
    """A trained model. `causal`, a mistake: a token sees only those before it."""

    def __init__(
        self, config: ModelConfig, weights: Mapping[str, Tensor], causal: bool = False
    ) -> None:
        self.config, self.weights, self.causal = config, weights, causal

    def __call__(self, joint: Joint, answers_NL: np.ndarray, revealed_NL: np.ndarray) -> np.ndarray:
        tokens_NT = torch.from_numpy(joint.canvas(answers_NL, revealed_NL))
        with torch.inference_mode():
            if self.causal:
                logits_NTV = dense(self.config, self.weights, tokens_NT)
            else:
                logits_NTV = bidirectional(self.config, self.weights, tokens_NT)
        p_NLV = logits_NTV[:, -answers_NL.shape[1] :].double().softmax(-1)
        return p_NLV.numpy()


def bidirectional(config: ModelConfig, weights: Mapping[str, Tensor], tokens_NT: Tensor) -> Tensor:
    """logits_NTV of texts of one length whose tokens all see each other."""
    length = tokens_NT.shape[1]
    visible_1TT = torch.ones((1, length, length), dtype=torch.bool)
    return dense(config, weights, tokens_NT, visible_BTS=visible_1TT)


def folder_of(name: str, shipped: str = SHIPPED) -> Path:
    """Where the shipped model of that name lies, or a folder with another training of it. Raises
    BadInput where there is none."""
    folder = dataset(f"{FOLDER}/{shipped}") if name == shipped else find(name).folder
    if folder is None:
        raise BadInput(f"{name}: only its architecture is known; give {shipped} or a folder")
    return folder


def load_masked(folder: Path | None = None, causal: bool = False) -> Masked:
    """The model in `folder`, else the shipped one. Raises BadInput where it knows other words."""
    folder = folder or folder_of(SHIPPED)
    config = read_config(folder)
    if config.vocab != VOCAB:
        raise BadInput(f"{folder}: a vocabulary of {config.vocab} tokens; list tasks have {VOCAB}")
    weights = {name: tensor.float() for name, tensor in Checkpoint(folder, config).items()}
    return Masked(config, weights, causal)
