"""Knobs and kinds that had other names before: addresses, presets and saved runs of then open."""

import pytest

from engine.core.config import from_dict, to_dict, update
from workbench.catalogue import study

SAME = {
    "megatron": (
        {"execution": "mesh", "execution.tensor": 1, "execution.model.layers": 6},
        {"executor": "mesh", "executor.tensor": 1, "executor.model.layers": 6},
    ),
    "tokenring": (
        {"place": "devices", "place.wiring": "switch", "place.link": "nvlink5"},
        {"executor": "modelled", "executor.wiring": "switch", "executor.link": "nvlink5"},
    ),
    "sequence-parallelism": (
        {"place": "processes", "place.limit": 30.0},
        {"executor": "real", "executor.limit": 30.0},
    ),
    "noloco": (
        {"executor": "described", "executor.bandwidth": 1e6},
        {"executor": "modelled", "executor.bandwidth": 1e6},
    ),
    "one-bit-adam": ({"executor": "ranks"}, {"executor": "real"}),
    "flash-attention-2": ({"workers": "threads"}, {"workers": "real"}),
    "lean-attention": (
        {"workers": "threads", "workers.count": 1, "dtype": "float32"},
        {"workers": "real", "workers.count": 1, "dtype": "float32"},
    ),
}


@pytest.mark.parametrize("slug", SAME)
def test_an_address_of_before_opens_as_one_of_now(slug):
    config, (before, now) = study(slug).config, SAME[slug]
    assert update(config, before) == update(config, now)


@pytest.mark.parametrize("slug", SAME)
def test_a_saved_config_of_before_reads_back(slug):
    before, now = SAME[slug]
    config = update(study(slug).config, now)
    saved = to_dict(config)
    for old, new in zip(before, now, strict=True):
        if isinstance(saved.get(new), dict):
            saved[old] = {**saved.pop(new), "kind": before[old]}
    assert from_dict(type(config), saved) == config
