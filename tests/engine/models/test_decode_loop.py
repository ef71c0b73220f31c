"""The decode loop says what single steps and the sampler say, token for token and bit for bit."""

import numpy as np
import pytest
import torch

from engine.kernels import sample
from engine.models.batch import pack
from engine.models.fused_step import Fused, Onward
from tests.engine.models.fused import CONFIGS, SIZE, memory, places, random_weights, texts

COUNTS = np.array([5, 1, 3], np.int32)
HEAT = np.array([0.0, 0.7, 0.9]), np.array([0, 0, 20]), np.array([1.0, 0.9, 1.0])
WISHES = (*HEAT, np.array([0.0, 0.0, 0.05]), np.array([1, 2, 3]))


@pytest.mark.parametrize("name", ["llama", "nothing divides"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_go_on_as_they_do_step_by_step(name, dtype):
    config, pages = CONFIGS[name], places(3)
    fused, tokens = Fused(config, random_weights(config, dtype)), texts(config, [30, 14, 3])
    known = np.array([len(text) for text in tokens], np.int32)
    said, caches = [], []
    for looped in (False, True):
        kv, rows_RW = memory(config), np.zeros((3, 64), np.int32)
        batch = pack(tokens, [0, 0, 0], pages, SIZE)
        if looped:
            tables_DP, scratch = np.array(pages, np.int32), kv.pages - 1
            rows = np.arange(3)
            fused.decode_loop(
                batch, kv, Onward(rows, known, COUNTS, rows_RW, tables_DP, scratch, WISHES)
            )
        else:
            for ahead in range(int(COUNTS.max())):
                rows = np.flatnonzero(ahead < COUNTS)
                if ahead:
                    fed = [[rows_RW[row, known[row] + ahead - 1]] for row in rows]
                    starts = (known[rows] + ahead - 1).tolist()
                    batch = pack(fed, starts, [pages[row] for row in rows], SIZE)
                logits_RV = fused.forward(batch, kv).numpy()
                wishes = sample.Wishes(*[column[rows] for column in WISHES], known[rows] + ahead)
                rows_RW[rows, known[rows] + ahead] = sample.sample(logits_RV, wishes)
        said.append(rows_RW)
        kept = [torch.nan_to_num(t[: kv.pages - 1]) for each in kv.tensors for t in each.values()]
        caches.append(kept)
    assert np.array_equal(*said) and said[0].any()
    assert all(torch.equal(one, other) for one, other in zip(*caches, strict=True))
