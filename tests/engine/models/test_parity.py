"""Every family's logits and greedy tokens against transformers, prefill and decode, paged."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.models.batch import pack
from engine.models.families import read_config
from engine.models.kv import PagedKV
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.load import save
from engine.models.model import Model
from engine.models.reference import dense
from tests.engine.models import small

transformers = pytest.importorskip("transformers")
TOLERANCE = 1e-4
PAGE = 4
LENGTHS = (21, 1, 13)


@pytest.fixture(params=list(small.FAMILIES), scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Our config and weights with transformers' model of the same folder."""
    config = small.config(request.param)
    weights = small.weights(config)
    folder = tmp_path_factory.mktemp(request.param)
    save(folder, config, weights)
    return config, weights, theirs(folder)


def theirs(folder: Path):
    load = transformers.AutoModelForCausalLM.from_pretrained
    return load(folder, attn_implementation="eager", dtype=torch.float32).eval()


def logits_of(model, tokens: list[int]) -> Tensor:
    """What transformers says at every position, one sequence, without a cache."""
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False).logits[0]


def prompts(vocab: int, lengths: tuple[int, ...] = LENGTHS) -> list[list[int]]:
    random = np.random.default_rng(5)
    return [random.integers(3, vocab, length).tolist() for length in lengths]


def scattered_pages(count: int, tokens: int) -> list[list[int]]:
    """Pages for `count` sequences, dealt in an order that is not the order of positions."""
    each = -(-tokens // PAGE)
    order = np.random.default_rng(9).permutation(count * each)
    return [order[i::count].tolist() for i in range(count)]


def test_dense_logits_equal_transformers(pair) -> None:
    config, weights, model = pair
    for tokens in prompts(config.vocab, (40, 1)):
        ours = dense(config, weights, torch.tensor([tokens]))[0]
        assert (ours - logits_of(model, tokens)).abs().max() < TOLERANCE


@pytest.mark.parametrize("plain", [False, True], ids=["kernels", "plain"])
def test_prefill_and_decode_through_pages_equal_transformers(pair, plain: bool) -> None:
    config, weights, model = pair
    ours = Model(config, weights, plain=plain)
    kv = PagedKV(ours.spec, 64, PAGE, states=3)
    sequences, pages = prompts(config.vocab), scattered_pages(3, 40)
    caches = [transformers.DynamicCache(config=model.config) for _ in sequences]
    chunks, starts = [list(s) for s in sequences], [0] * len(sequences)
    for step in range(12):
        got = ours.forward(pack(chunks, starts, pages, PAGE), kv)
        for row, (chunk, cache) in enumerate(zip(chunks, caches, strict=True)):
            with torch.no_grad():
                want = model(torch.tensor([chunk]), past_key_values=cache).logits[0, -1]
            assert (got[row] - want).abs().max() < TOLERANCE, f"step {step}, sequence {row}"
        starts = [start + len(chunk) for start, chunk in zip(starts, chunks, strict=True)]
        chunks = [[(7 * step + 11 * row) % config.vocab] for row in range(len(chunks))]


def test_a_folder_transformers_wrote_holds_the_same_model(pair, tmp_path: Path) -> None:
    config, weights, model = pair
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    read = read_config(tmp_path)
    fields = ("rotary", "latent", "experts", "windows", "attention_scale", "eos", "tied")
    assert [getattr(read, field) for field in fields] == [getattr(config, f) for f in fields]
    held = Checkpoint(tmp_path, read)
    assert all(torch.equal(held[name], tensor) for name, tensor in weights.items())


def test_the_same_request_gets_the_same_bits_alone_and_in_any_batch() -> None:
    """The bits, not only the tokens, where every operation is a kernel."""
    for name in ("llama-3", "gemma-2", "mixtral", "gpt2"):
        config = small.config(name)
        ours = Model(config, small.weights(config))
        sequences, pages = prompts(config.vocab, (9, 30, 1, 17)), scattered_pages(4, 32)
        kv = PagedKV(ours.spec, 40, PAGE)
        together = ours.forward(pack(sequences, [0] * 4, pages, PAGE), kv)
        for row, (tokens, own) in enumerate(zip(sequences, pages, strict=True)):
            alone = ours.forward(pack([tokens], [0], [own], PAGE), kv)
            assert torch.equal(alone[0], together[row]), name


def test_chunked_prefill_equals_whole_prefill(pair) -> None:
    config, weights, model = pair
    ours = Model(config, weights)
    tokens = prompts(config.vocab, (30,))[0]
    want = logits_of(model, tokens)
    pages = scattered_pages(1, 32)
    for size in (1, 3, 7, PAGE):
        kv = PagedKV(ours.spec, 8, PAGE, states=1)
        for start in range(0, len(tokens), size):
            chunk = tokens[start : start + size]
            batch = pack([chunk], [start], pages, PAGE)
            batch.logits_at_R = np.arange(len(chunk), dtype=np.int32)
            got = ours.forward(batch, kv)
            assert (got - want[start : start + len(chunk)]).abs().max() < TOLERANCE


def test_greedy_tokens_equal_transformers(pair, full) -> None:
    config, weights, model = pair
    count = 64 if full else 24
    ours = Model(config, weights)
    prompt = prompts(config.vocab, (17,))[0]
    with torch.no_grad():
        ids = torch.tensor([prompt])
        options = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False}
        mask = torch.ones_like(ids)
        want = model.generate(ids, attention_mask=mask, eos_token_id=None, **options)
    kv, pages = PagedKV(ours.spec, 24, PAGE, states=1), scattered_pages(1, 84)
    chunk, start, got = prompt, 0, []
    while len(got) < count:
        logits = ours.forward(pack([chunk], [start], pages, PAGE), kv)
        start += len(chunk)
        chunk = [int(logits[0].argmax())]
        got += chunk
    assert got == want[0, len(prompt) :].tolist()
    assert len(set(got)) > count // 12, "a model that repeats itself shows little"
