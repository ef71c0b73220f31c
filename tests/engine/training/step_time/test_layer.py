"""A layer's operators against checkpoints' parameters and published formulas, exactly."""

import pytest

from engine.core.config import from_dict
from engine.core.errors import BadInput
from engine.models.footprint import parameter_count
from engine.models.loading.public import architecture, public
from engine.training.pipeline import transformer_cost
from engine.training.step_time.described import TrainingRun
from engine.training.step_time.layer import layers, model_flops, parameters
from engine.training.step_time.memory import kept, states

PUBLIC = {name: architecture(name, facts) for name, facts in public().items()}


def gpt(hidden: int = 6144, depth: int = 48, heads: int = 64) -> dict[str, object]:
    return {
        "architectures": ("GPT2LMHeadModel",), "n_embd": hidden, "n_layer": depth, "n_head": heads,
        "n_inner": 4 * hidden, "vocab_size": 51200, "n_positions": 2048,
        "tie_word_embeddings": True,
    }  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_a_checkpoints(name):
    config = PUBLIC[name]
    if any(config.recurrent) or config.index is not None or config.wide_heads is not None:
        with pytest.raises(BadInput, match="step's time is not known for it yet"):
            parameters(config)
    else:
        assert parameters(config) == parameter_count(config)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"])
def test_ranks_hold_what_the_whole_holds(name):
    config = PUBLIC[name]
    whole, shared = layers(config), layers(config, tensor=2, expert=2)
    for one, part in zip(whole, shared, strict=True):
        cut = ("qkv", "out", "up", "down", "query", "latent_up")
        for a, b in zip(one.products, part.products, strict=True):
            assert a.out * a.into == b.out * b.into * (2 if a.name in cut else 1)
        inner = sum(each.out * each.into for each in part.experts)
        assert one.here * sum(e.out * e.into for e in one.experts) == 4 * part.here * inner


def test_a_gpts_flops_are_megatrons():
    run = from_dict(TrainingRun, {"model": "", "architecture": gpt()})
    shape = transformer_cost.Shape(6144, 48, 64, 51200, 2048, 4)
    told = model_flops(run.config(), 2048, 8 * 2048)
    assert told == pytest.approx(transformer_cost.step_flops(shape, 8), rel=1e-12)


def test_a_window_and_a_causal_mask_see_their_pairs():
    one = layers(PUBLIC["mistral-7b"])[0]
    assert one.window == 4096 and one.pairs(4096) == 4096 * 4097 / 2
    assert one.pairs(6000) == sum(min(place + 1, 4096) for place in range(6000))


@pytest.mark.parametrize(
    ("recompute", "attention", "split"),
    [("none", "unfused", False), ("selective", "unfused", True), ("full", "unfused", False)],
)
def test_activations_are_those_of_2205_05198(recompute, attention, split):
    recipe = {
        "sequence": 2048, "microbatch": 4, "recompute": recompute, "attention": attention,
        "dropout": True,
    }  # fmt: skip
    fields = {
        "model": "", "architecture": gpt(), "recipe": recipe,
        "split": {"tensor": 8, "sequence_parallel": split},
    }  # fmt: skip
    run = from_dict(TrainingRun, fields)
    shape = transformer_cost.Shape(6144, 48, 64, 51200, 2048, 4, 8, split, recompute)
    assert kept(run, layers(run.config(), 8)[0]) == transformer_cost.activation_bytes(shape)


def test_states_follow_zero():
    def bytes_of(shard: str) -> tuple[float, ...]:
        run = from_dict(TrainingRun, {"cluster": {"devices": 8}, "split": {"shard": shard}})
        return states(run, 8.0)

    assert bytes_of("none") == (16, 32, 96)
    assert bytes_of("optimizer") == (16, 32, 12)
    assert bytes_of("gradients") == (16, 4, 12)
    assert bytes_of("parameters") == (0, 4, 12)


def test_what_does_not_divide_is_told():
    with pytest.raises(BadInput, match=r"32 heads do not divide among 3 ranks"):
        layers(PUBLIC["llama-3.1-8b"], tensor=3)
