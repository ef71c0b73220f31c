"""The live page's engine samples attention only of models that let it."""

import pytest

from workbench.pages.app import live_config


@pytest.mark.parametrize(
    ("model", "every"), [("stdlib-5m", 8), ("qwen3-next-80b-a3b", 0), ("streams/p4-0", 0)]
)
def test_attention_is_sampled_where_it_can_be(model, every):
    assert live_config(model).attention_every == every
