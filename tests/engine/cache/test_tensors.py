"""Copies between pages and tiers, on tensors."""

import numpy as np
import torch

from engine.cache.tensors import Storage
from engine.models.kv import CacheSpec


def pairs(*rows):
    return np.array(rows, np.int32)


def storage() -> Storage:
    spec = CacheSpec(((("k", 1, 3), ("v", 1, 2)),) * 2, "float32")
    held = Storage(spec, 4, 2, 3)
    for tensors in held.kv.tensors:
        for tensor in tensors.values():
            tensor.copy_(torch.arange(tensor.numel(), dtype=torch.float32).view_as(tensor))
    return held


def test_a_page_comes_back_from_the_host_as_it_left():
    held = storage()
    before = [{n: t.clone() for n, t in layer.items()} for layer in held.kv.tensors]
    held.swap_out(pairs([1, 2], [3, 0]))
    for layer in held.kv.tensors:
        for tensor in layer.values():
            tensor[:4] = -1
    held.swap_in(pairs([2, 0], [0, 2]))
    for layer, old in zip(held.kv.tensors, before, strict=True):
        for name, tensor in layer.items():
            assert torch.equal(tensor[0], old[name][1])
            assert torch.equal(tensor[2], old[name][3])


def test_a_copy_leaves_its_source_alone():
    held = storage()
    source = held.kv.tensors[1]["v"][2].clone()
    held.copy(pairs([2, 0]))
    assert torch.equal(held.kv.tensors[1]["v"][0], source)
    assert torch.equal(held.kv.tensors[1]["v"][2], source)


def test_no_pairs_is_no_work():
    held = storage()
    held.copy(np.zeros((0, 2), np.int32))
    assert held.scratch == 4 and held.kv.pages == 5
