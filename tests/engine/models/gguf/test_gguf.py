"""GGUF files: blocks are the numbers ggml says, models of them run packed, bad files refused."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as Rules
from tokenizers import models

from engine.core.errors import BadInput
from engine.kernels.quantised.pack import pack as pack_codes
from engine.kernels.quantised.panels_cpu import quantised_matmul
from engine.kernels.quantised.reference import quantised_matmul as reference
from engine.models.batch import pack
from engine.models.gguf import blocks
from engine.models.gguf.checkpoint import named
from engine.models.gguf.header import read_header
from engine.models.kv import PagedKV
from engine.models.loading.find import find
from engine.models.loading.load import opened
from engine.models.parameters import all_parameters
from engine.models.reference import dense
from engine.models.text.tokenizer import Tokenizer, has_tokenizer
from tests.engine.models.gguf.model_file import model
from tests.engine.models.gguf.written import random_blocks, write


def half(two: np.ndarray) -> float:
    return float(np.frombuffer(two.tobytes(), np.float16)[0])


def plain(kind: str, b: np.ndarray) -> list[float]:
    """One block's numbers as ggml-quants.c has them, loop by loop."""
    raw = b.tolist()
    if kind == "Q8_0":
        return [half(b[:2]) * v for v in b[2:].view(np.int8).tolist()]
    if kind == "Q4_0":
        whole = [v & 15 for v in raw[2:]] + [v >> 4 for v in raw[2:]]
        return [half(b[:2]) * (v - 8) for v in whole]
    found = [0.0] * 256
    if kind == "Q4_K":
        s = raw[4:16]
        for group in range(8):
            if group < 4:
                scale, least = s[group] & 63, s[group + 4] & 63
            else:
                scale = s[group + 4] & 15 | (s[group - 4] >> 6) << 4
                least = s[group + 4] >> 4 | (s[group] >> 6) << 4
            for i in range(32):
                byte = raw[16 + group // 2 * 32 + i]
                code = byte >> 4 if group % 2 else byte & 15
                found[32 * group + i] = half(b[:2]) * scale * code - half(b[2:4]) * least
        return found
    scales = b[192:208].view(np.int8).tolist()
    for part in range(2):
        for i in range(32):
            ql, qh = raw[64 * part :], raw[128 + 32 * part + i]
            four = ql[i] & 15, ql[i + 32] & 15, ql[i] >> 4, ql[i + 32] >> 4
            for j, low in enumerate(four):
                code = (low | (qh >> 2 * j & 3) << 4) - 32
                place = 128 * part + 32 * j + i
                found[place] = half(b[208:]) * scales[place // 16] * code
    return found


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_K", "Q6_K"])
def test_blocks_are_the_numbers_ggml_says_and_multiply_packed(tmp_path: Path, kind: str) -> None:
    raw = random_blocks(kind, 5, 2)
    write(tmp_path / "t.gguf", {}, {"w": (kind, raw)})
    [stored] = read_header(tmp_path / "t.gguf").tensors.values()
    expected = np.array([[v for b in row for v in plain(kind, b)] for row in raw])
    ours = blocks.numbers(stored).numpy()
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)
    codes = blocks.codes(stored)
    assert codes is not None
    x = torch.randn(3, expected.shape[1], generator=torch.Generator().manual_seed(0))
    truth = reference(x.double(), codes)
    terms = x.abs().double() @ torch.from_numpy(np.abs(expected)).T
    error = (quantised_matmul(x, pack_codes(codes)) - truth).abs() / terms
    assert error.max() < 2e-6


def test_blocks_are_those_of_the_package_of_llama_cpp() -> None:
    pytest.importorskip("gguf")
    from gguf import GGMLQuantizationType, quants

    for kind in ("Q8_0", "Q4_0", "Q4_K", "Q6_K"):
        raw = random_blocks(kind, 7, 3, seed=1)
        theirs = quants.dequantize(raw.reshape(7, -1), GGMLQuantizationType[kind])
        ours = blocks.READERS[kind](raw).dequantised().numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_model_of_mixed_blocks_runs_packed_as_the_reference_on_its_numbers(
    tmp_path: Path, kind: str
) -> None:
    found = find(str(model(tmp_path / "small.gguf", kind)))
    config, source = opened(tmp_path / "small.gguf")
    assert source.holds_codes and {named(p.name)[0] for p in all_parameters(config)} <= set(
        read_header(tmp_path / "small.gguf").tensors
    )
    made = found.open()
    assert made.fused is not None
    tokens = [3, 5, 1, 2, 4]
    logits = made.forward(pack([tokens], [0], [[0]], 16), PagedKV(made.spec, 1, 16))
    weights = {name: source[name].float() for name in source}
    truth = dense(config, weights, torch.tensor([tokens]))[0, -1]
    torch.testing.assert_close(logits[0], truth, rtol=1e-4, atol=1e-4)


def test_rows_of_queries_are_put_back_as_transformers_has_them(tmp_path: Path) -> None:
    for kind in ("llama", "qwen2"):
        _, source = opened(model(tmp_path / f"{kind}.gguf", kind))
        name = "model.layers.1.self_attn.q_proj.weight"
        stored = read_header(tmp_path / f"{kind}.gguf").tensors[named(name)[0]]
        theirs, ours = blocks.numbers(stored), source[name]
        if kind == "qwen2":
            assert torch.equal(ours, theirs)
        else:
            pairs = ours.reshape(4, 2, 32, 256).swapaxes(1, 2).reshape(256, 256)
            assert torch.equal(pairs, theirs)
            codes = source.codes(name)
            assert codes is not None and torch.equal(codes.dequantised(), ours)


def test_the_tokenizer_is_the_file_s_own_or_one_line_says_what_is_missing(tmp_path: Path) -> None:
    file = model(tmp_path / "small.gguf")
    tokenizer = Tokenizer(file)
    assert tokenizer.encode("abc") == [0, 3, 4] and tokenizer.decode([3, 4]) == "abc"
    assert (tokenizer.bos, tokenizer.eos) == ((0,), (4,))
    assert tokenizer.template == "{{ messages }}" and tokenizer.special_texts["bos_token"] == "<s>"
    other = model(tmp_path / "other.gguf", **{"tokenizer.ggml.model": "t5"})
    with pytest.raises(BadInput, match="put the model's tokenizer.json beside the file"):
        Tokenizer(other)
    Rules(models.WordLevel({"a": 0, "?": 1}, unk_token="?")).save(str(tmp_path / "tokenizer.json"))
    assert Tokenizer(other).encode("a") == [0]
    (tmp_path / "tokenizer.json").unlink()
    bare = model(tmp_path / "bare.gguf", **{"tokenizer.ggml.model": "no_vocab"})
    assert has_tokenizer(file) and not has_tokenizer(bare)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"general.architecture": "mamba"}, "general.architecture is 'mamba'"),
        (
            {"llama.expert_count": 4, "llama.expert_used_count": 2},
            "ffn_gate_inp.weight' is missing",
        ),
        ({"llama.rope.scaling.type": "yarn"}, "linear is read"),
        ({"llama.block_count": 3}, "'blk.2.attn_norm.weight' is missing"),
        ({"llama.feed_forward_length": 512}, "has shape [256, 256]"),
        ({"llama.attention.head_count": 0}, "num_attention_heads"),
        ({"llama.attention.head_count": "4"}, "num_attention_heads"),
        ({"general.alignment": 3}, "alignment of 3"),
    ],
)
def test_metadata_that_is_not_read_is_refused_in_one_line(tmp_path, more, words) -> None:
    with pytest.raises(BadInput) as caught:
        opened(model(tmp_path / "m.gguf", **more))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_vector_in_blocks_of_few_bits_is_one_line(tmp_path: Path) -> None:
    write(tmp_path / "t.gguf", {}, {"w": ("Q8_0", random_blocks("Q8_0", 1, 2)[0])})
    [stored] = read_header(tmp_path / "t.gguf").tensors.values()
    with pytest.raises(BadInput, match="only matrices are read of blocks"):
        blocks.numbers(stored)


def test_bytes_between_tensors_show_a_shape_told_wrong(tmp_path: Path) -> None:
    file, row = tmp_path / "t.gguf", np.ones((1, 64), np.float32)
    write(file, {}, {"a": ("F32", row), "b": ("F32", row)})
    whole = file.read_bytes()
    sides = whole.index(b"a" + struct.pack("<IQ", 2, 64)) + 5
    file.write_bytes(whole[:sides] + struct.pack("<Q", 32) + whole[sides + 8 :])
    with pytest.raises(BadInput, match="128 bytes before tensor 'b'"):
        read_header(file)


def test_no_damage_to_a_file_gives_anything_but_one_line(tmp_path: Path) -> None:
    whole = model(tmp_path / "m.gguf").read_bytes()
    path, draw = tmp_path / "broken.gguf", np.random.default_rng(0)
    huge = struct.pack("<Q", 1 << 60)
    damaged = [whole[:cut] for cut in (0, 3, 8, 20, 100, 2000, len(whole) - 40)]
    damaged += [whole[:at] + huge + whole[at + 8 :] for at in (8, 16, 24)]
    for place in draw.integers(4, 2500, 60).tolist():
        damaged.append(whole[:place] + bytes([draw.integers(256)]) + whole[place + 1 :])
    refused = 0
    for each in damaged:
        path.write_bytes(each)
        try:
            opened(path)
        except BadInput as fault:
            refused += 1
            assert "\n" not in str(fault)
    assert refused >= 10


def test_a_file_of_holes_that_says_it_holds_texts_without_number_is_refused_at_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.gguf"
    told = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<IIQ", 9, 8, 3_000_000)
    with path.open("wb") as file:
        file.write(told)
        file.truncate(90_000_000)
    with pytest.raises(BadInput, match="3,000,000 texts, over"):
        read_header(path)
