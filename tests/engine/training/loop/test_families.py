"""Every family the engine loads learns: gradients reach all weights and the loss falls."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.core.clock import WallClock
from engine.core.events import Level
from engine.models.reference import dense
from engine.training.losses.language import Training, fresh_weights, train
from tests.engine.models.small import FAMILIES, config, weights

STREAM = np.tile(np.arange(2, 50, dtype=np.uint16), 40)  # counting: easy to learn
SHORT = Training(steps=12, warmup=1, decay=0, rate=1e-2, tokens=128, context=16, report=1)
ONE_OF_EACH = [
    "llama-3", "mistral", "qwen2", "qwen3", "mixtral", "qwen3-moe", "gpt2", "gemma-2",
    "deepseek-v2", "deepseek-v3",
]  # fmt: skip
STEERED = ("e_score_correction_bias", ".indexer.")  # choose experts or tokens, say nothing


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("narrow", [False, True])
def test_gradients_reach_every_weight(name: str, narrow: bool) -> None:
    model = config(name)
    held = {key: value.requires_grad_() for key, value in weights(model).items()}
    ids_BT = torch.randint(0, model.vocab, (16, 33), generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        logits_BTV = dense(model, held, ids_BT[:, :-1])
    F.cross_entropy(logits_BTV.float().flatten(0, 1), ids_BT[:, 1:].flatten()).backward()
    missing = [key for key, value in held.items() if value.grad is None or not value.grad.any()]
    assert [key for key in missing if not any(name in key for name in STEERED)] == []
    assert all(v.grad.isfinite().all() for v in held.values() if v.grad is not None)


def test_gradients_of_experts_are_those_of_finite_differences() -> None:
    model = config("qwen3-moe")
    held = {key: value.double().requires_grad_() for key, value in weights(model).items()}
    ids_BT = torch.arange(12)[None] % model.vocab

    def loss() -> torch.Tensor:
        logits_BTV = dense(model, held, ids_BT[:, :-1])
        return F.cross_entropy(logits_BTV.flatten(0, 1), ids_BT[:, 1:].flatten())

    loss().backward()
    for name in ("model.layers.0.mlp.gate.weight", "model.layers.1.mlp.experts.0.up_proj.weight"):
        weight = held[name]
        assert weight.grad is not None
        place = tuple(
            int(i) for i in np.unravel_index(int(weight.grad.abs().argmax()), weight.shape)
        )
        with torch.no_grad():
            found = []
            for shift in (1e-4, -2e-4):
                weight[place] += shift
                found.append(loss().item())
            weight[place] += 1e-4
        slope = (found[0] - found[1]) / 2e-4
        # Norms are computed in float32, so a slope is as exact as that.
        assert slope == pytest.approx(weight.grad[place].item(), rel=2e-2)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_the_loss_of_each_family_falls(name: str) -> None:
    events: list = []
    train(config(name), SHORT, STREAM, STREAM[:40], emit=events.append, clock=WallClock())
    losses = [e.value for e in events if isinstance(e, Level) and e.name == "loss"]
    assert losses[0] > 4 and losses[-1] < 0.8 * losses[0]


def test_only_what_writes_into_the_residual_starts_smaller() -> None:
    found = fresh_weights(config("deepseek-v2"), 0)
    attention = "model.layers.0.self_attn"
    assert found[f"{attention}.kv_a_proj_with_mqa.weight"].std() == pytest.approx(0.02, rel=0.1)
    assert found[f"{attention}.o_proj.weight"].std() == pytest.approx(0.02 / 6**0.5, rel=0.1)
