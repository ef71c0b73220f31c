"""On a GPU, where there is one: the engine answers as on the processor, token for token."""

import numpy as np
import pytest
import torch

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.executors.tensors.sampler import Sampler
from engine.models.model import Model
from engine.models.ops import plain_ops
from tests.engine.inference.small import TINY, config, request, serve, tiny_model

VOCAB = TINY["vocab_size"]
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
CROWDED = {"pages": 14, "page_size": 4, "step_tokens": 16}  # prompts in chunks, and preemption


def test_without_a_gpu_it_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    asked = update(InferenceConfig(), {"executor.device": "cuda"})
    with pytest.raises(BadInput, match="device cuda: torch sees no GPU"):
        asked.executor.build(asked)


def test_likeliest_tokens_are_found_where_the_logits_lie():
    logits_RV = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    logits_RV[2, [7, 30]] = 9.0  # the first of equals
    from_S, sampler = np.array([4, 2, 0]), Sampler(False)
    best_R, logprob_R = sampler.greedy(logits_RV.numpy())
    tokens_S, logprobs_S = sampler.on_device(logits_RV, from_S)
    assert tokens_S.tolist() == best_R[from_S].tolist() and tokens_S[1] == 7
    np.testing.assert_allclose(logprobs_S, logprob_R[from_S], atol=1e-5)


def answers(model: Model, wish: dict, **fields) -> list[list[int]]:
    chosen = config(**fields)
    held = Engine(chosen, executor_for(chosen, model, "tiny"), VirtualClock(), lambda event: None)
    return serve(held, [request(9 + 3 * n, n, VOCAB, max_tokens=12, **wish) for n in range(5)])


@GPU
@pytest.mark.parametrize("fields", [{}, CROWDED], ids=["roomy", "crowded"])
@pytest.mark.parametrize("wish", [{}, {"temperature": 0.8, "top_p": 0.9}], ids=["greedy", "drawn"])
def test_answers_are_those_of_the_processor(wish: dict, fields: dict):
    here = tiny_model()
    there = Model(here.config, here.weights, device="cuda")
    plain = Model(here.config, here.weights, ops=plain_ops())
    assert answers(there, wish, **fields) == answers(plain, wish, **fields)
