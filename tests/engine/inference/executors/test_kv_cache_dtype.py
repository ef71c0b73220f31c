"""The KV cache in e4m3: a quarter of the memory, and what it costs a shipped model in words."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import engine.inference.engine
from engine.core.clock import VirtualClock
from engine.core.errors import BadInput
from engine.inference.engine import Engine
from engine.inference.executors.real import Real
from engine.models.batch import pack
from engine.models.kv import PagedKV, in_fp8
from engine.models.loading.find import find
from engine.models.text.tokenizer import Tokenizer
from tests.engine.inference.small import config, request, serve
from tests.engine.models import small


def perplexity(model, spec, tokens: list[int]) -> float:
    """Of a text in one pass, whose keys and values are read back from the pages."""
    batch = pack([tokens], [0], [list(range(-(-len(tokens) // 16)))], 16)
    batch.logits_at_R = np.arange(len(tokens), dtype=np.int32)
    logits = model.forward(batch, PagedKV(spec, len(batch.block_table_BP[0]), 16))
    lost = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(tokens[1:]))
    return math.exp(lost.item())


@pytest.mark.slow
def test_a_cache_in_eight_bits_costs_the_shipped_model_little_in_perplexity():
    found = find("stdlib-5m")
    model, text = found.open(), Path(engine.inference.engine.__file__).read_text()
    tokens = Tokenizer(found.folder).encode(text)[:400]
    spec = in_fp8(model.spec, model.config)
    assert spec.bytes_per_token() * 4 == model.spec.bytes_per_token()
    plain, rounded = perplexity(model, model.spec, tokens), perplexity(model, spec, tokens)
    assert plain != rounded and abs(rounded / plain - 1) < 0.03


def test_latents_stay_as_they_are_and_say_so():
    config = small.config("deepseek-v2-lite")
    with pytest.raises(BadInput, match="caches latents"):
        in_fp8(find("stdlib-5m").open().spec, config)


def test_a_knob_of_real_execution_asks_for_it():
    assert Real().kv_cache_dtype == "auto"
    chosen = config(executor=Real(kv_cache_dtype="fp8_e4m3"), page_size=16)
    built = chosen.executor.build(chosen)
    assert built.executor.facts.bytes_per_page == 16 * 384 * 4
    held = Engine(chosen, built.executor, VirtualClock(), lambda event: None)
    [answer] = serve(held, [request(9, 1, 97, max_tokens=9, ignore_eos=True)])
    assert len(answer) == 9
