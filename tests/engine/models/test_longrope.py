"""LongRoPE's two lists of factors: which one is taken, and both against transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.core.errors import BadInput
from engine.models.loading.load import save
from engine.models.reference import dense
from tests.engine.models import small

transformers = pytest.importorskip("transformers")
SHORT, LONG = [1.0, 1.5], [1.25, 6.0]


def config(**own: Any) -> Any:
    scaling = {"type": "longrope", "short_factor": SHORT, "long_factor": LONG}
    return small.config("phi-4-mini", rope_scaling=scaling, **own)


@pytest.mark.parametrize(
    ("positions", "original", "taken"), [(128, 32, LONG), (32, 32, SHORT), (128, 128, SHORT)]
)
def test_a_model_served_beyond_its_pretraining_takes_the_long_factors(
    positions: int, original: int, taken: list[float], tmp_path: Path
) -> None:
    held = {"max_position_embeddings": positions, "original_max_position_embeddings": original}
    ours = config(**held)
    assert ours.rotary.slower == tuple(taken)
    weights = small.weights(ours)
    save(tmp_path, ours, weights)
    load = transformers.AutoModelForCausalLM.from_pretrained
    theirs = load(tmp_path, attn_implementation="eager", dtype=torch.float32).eval()
    length = 40 if taken is LONG else 20  # beyond the original positions, or within
    tokens = torch.arange(length)[None] * 7 % ours.vocab
    with torch.no_grad():
        want = theirs(tokens, use_cache=False).logits[0]
    assert (dense(ours, weights, tokens)[0] - want).abs().max() < 1e-5


@pytest.mark.parametrize(
    "wrong",
    [{"long_factor": None}, {"long_factor": [1.0]}, {"short_factor": [1.0, "x"]},
     {"short_factor": [0.0, 1.0]}, {"long_factor": [1.0, float("nan")]}],
)  # fmt: skip
def test_a_bad_list_of_factors_is_named(wrong: dict[str, Any]) -> None:
    scaling = {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG} | wrong
    with pytest.raises(BadInput, match=next(iter(wrong))):
        small.config("phi-4-mini", rope_scaling=scaling)
