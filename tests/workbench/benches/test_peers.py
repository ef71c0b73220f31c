"""Peers beside the decode benchmark: absent ones say how to install them, children speak JSON."""

import importlib
import importlib.util
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.models.rotary import rotate
from workbench.benches import decode
from workbench.benches._decode_work import Answered, Ask
from workbench.benches._peers import _vllm_child, llama_cpp, measure, names, openvino_genai, vllm

REQUESTS = {"batch-1": [Ask([5, 6], 3)], "batch-16": [Ask([5, 6], 3), Ask([7], 2)]}
WANTED = {"float32": REQUESTS, "int3": {"batch-1-int3": REQUESTS["batch-1"]}}
RATES = {"batch-1": 2.0, "batch-16": 4.0}


def test_every_peer_is_found_by_its_file():
    assert names() == ["llama_cpp", "onnxruntime_genai", "openvino_genai", "vllm"]


@pytest.mark.parametrize("name", ["llama_cpp", "onnxruntime_genai", "openvino_genai", "vllm"])
def test_an_absent_peer_is_one_line_with_what_to_install(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    [(row, answered)] = measure(name, WANTED, RATES, 1)
    assert answered is None
    assert row["missing"].startswith("not installed (pip install ")
    assert row["name"] == "batch-1, batch-16, batch-1-int3"
    _, cells = decode.table([row])
    assert cells[1] == name.replace("_", "-") and cells[2] == row["missing"]


def test_openvino_s_exporter_is_the_one_on_the_path(tmp_path, monkeypatch):
    cli = tmp_path / "optimum-cli"
    cli.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/asked"\necho no model >&2; exit 3\n')
    cli.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with (
        pytest.raises(BadInput, match="optimum's exporter failed: no model"),
        openvino_genai.open(tmp_path, tmp_path, "int4"),
    ):
        pass
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith(f"export openvino -m {tmp_path}")
    assert "--all-layers" in asked, "the output head in 4 bits too, as ours"


@pytest.fixture
def peer(monkeypatch):
    """An adapter in place of llama.cpp's: `rate` tokens a second, or a fault."""
    module = importlib.import_module("workbench.benches._peers.measure")
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: "there")
    monkeypatch.setattr(module, "_write", lambda folder: folder.mkdir())
    closed = []

    def put(answer):
        @contextmanager
        def opened(checkpoint, work, form):
            assert form == "float32", "the only one of those wanted that llama.cpp has"
            assert checkpoint.is_dir() and work.is_dir()
            yield answer
            closed.append(checkpoint)

        monkeypatch.setattr(llama_cpp, "open", opened)
        return closed

    return put


def test_a_peer_s_rates_stand_beside_those_of_transformers(peer):
    closed = peer(lambda asks: Answered([[1] * ask.tokens for ask in asks], 0.5, 0.25))
    (one, said), (many, _) = measure("llama_cpp", WANTED, RATES, 3)
    assert said.tokens == [[1, 1, 1]], "what it answered, to lay beside ours"
    assert one["tokens_per_second"] == 2 / 0.25 and one["ratio_to_transformers"] == 4.0
    assert many["tokens_per_second"] == 5 / 0.5 and many["ratio_to_transformers"] == 2.5
    [folder] = closed
    assert not folder.exists(), "the converted weights are gone"


def test_a_peer_that_fails_is_one_line_and_the_table_goes_on(peer):
    def fail(asks):
        raise BadInput("it does not start")

    peer(fail)
    [(row, _)] = measure("llama_cpp", WANTED, RATES, 1)
    assert row["missing"] == "it does not start"


def test_rows_of_queries_and_keys_are_laid_out_as_llama_cpp_turns_them():
    heads, D, K = 3, 8, 5
    draw = torch.Generator().manual_seed(0)
    w_NK, x_K = torch.randn(heads * D, K, generator=draw), torch.randn(K, generator=draw)
    angle = torch.rand(D // 2, generator=draw)
    halves = (w_NK @ x_K).view(1, heads, D)
    turned = rotate(halves, angle.cos()[None, None], angle.sin()[None, None], False)
    theirs = torch.from_numpy(llama_cpp._interleaved(w_NK.numpy(), heads)) @ x_K
    pairs = theirs.view(heads, D // 2, 2)
    cos, sin = angle.cos(), angle.sin()
    real = pairs[..., 0] * cos - pairs[..., 1] * sin
    imaginary = pairs[..., 0] * sin + pairs[..., 1] * cos
    np.testing.assert_allclose(torch.cat([real, imaginary], -1), turned[0], atol=1e-5)


FAKE = """
from types import SimpleNamespace as Of


class platforms:
    pass


class SamplingParams:
    def __init__(self, temperature, max_tokens, ignore_eos, detokenize):
        self.count = max_tokens


class LLM:
    def __init__(self, **settings):
        print("a log line of its own")
        self.llm_engine, self.left = self, {}

    def add_request(self, name, prompt, wish):
        self.left[name + "-0"] = (prompt["prompt_token_ids"], [], wish.count)

    def has_unfinished_requests(self):
        return bool(self.left)

    def step(self):
        out = []
        for name, (prompt, made, count) in list(self.left.items()):
            made.append(prompt[-1] + len(made) + 1)
            out.append(Of(request_id=name, outputs=[Of(token_ids=made)]))
            if len(made) == count:
                del self.left[name]
        return out
"""


def fake(folder, monkeypatch, cpu=True):
    package = folder / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text(FAKE)
    text = f"class current_platform:\n    is_cpu = staticmethod(lambda: {cpu})\n"
    (package / "platforms.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_vllm_s_child_answers_until_it_is_let_go(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch)
    with vllm.open(tmp_path, tmp_path, "float32") as answer:
        for _ in range(2):
            found = answer(REQUESTS["batch-16"])
            assert found.tokens == [[7, 8, 9], [8, 9]]
            assert 0 < found.decode_seconds <= found.seconds


def test_a_build_of_vllm_for_gpus_is_refused(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, cpu=False)
    with (
        pytest.raises(BadInput, match="not the build for processors"),
        vllm.open(tmp_path, tmp_path, "float32"),
    ):
        pass


def test_the_child_takes_nothing_of_ours_along():
    text = vllm.CHILD.read_text()
    assert "import workbench" not in text and "from workbench" not in text
    assert _vllm_child.MARK == "workbench "
