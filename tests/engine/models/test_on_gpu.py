"""On a GPU, where there is one: every family's logits there are those of plain torch here."""

import numpy as np
import pytest
import torch

from engine.models.batch import pack
from engine.models.kv import PagedKV
from engine.models.model import Model
from tests.engine.models import small
from tests.engine.models.small_configs import FAMILIES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
TOLERANCE = {"float32": 1e-3, "bfloat16": 5e-2}  # of the largest logit


def passes(model: Model) -> torch.Tensor:
    """Two prompts, then a chunk behind cached tokens, an answer and another prompt in one batch,
    then three answers."""
    kv = PagedKV(model.spec, pages=12, page_size=4, device=model.device, states=8)
    tables = [[2, 0, 3], [8, 1], [4, 5, 6]]
    first, second = [5, 9, 60, 33, 7, 20], [3, 8, 50]
    found = [model.forward(pack([first[:4], second[:2]], [0, 0], tables[:2], 4), kv)]
    mixed = [first[4:], second[2:], [11, 12, 13, 14, 15]]
    found.append(model.forward(pack(mixed, [4, 2, 0], tables, 4), kv))
    found.append(model.forward(pack([[1], [2], [3]], [6, 3, 5], tables, 4), kv))
    return torch.cat([logits.cpu() for logits in found])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_logits_of_every_family_are_those_of_plain_torch(name: str, dtype: str) -> None:
    config = small.config(name)
    weights = small.weights(config)
    plain = passes(Model(config, weights, plain=True))
    ours = passes(Model(config, weights, dtype, device="cuda"))
    assert np.isfinite(ours.numpy()).all()
    apart_R = (ours - plain).abs().amax(1) / plain.abs().max()
    # In bfloat16 a few rows choose other experts or tokens, as plain torch's do here.
    apart = float(apart_R.max() if dtype == "float32" else apart_R.median())
    assert apart < TOLERANCE[dtype], f"{apart:.2e} of the largest logit"
