"""llama.cpp: the checkpoint as a GGUF file, then batches of its low-level interface.

A sequence that is done leaves the batch; keys and values are float32 too.
"""

import ctypes
import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from engine.hardware.probes import threads
from workbench.benches._decode_work import Answered, Ask

PACKAGE = "llama_cpp"
INSTALL = "llama-cpp-python gguf"
CONTEXT = 512  # positions of each sequence; the benchmark's longest is 384
FORMATS = {"float32": "F32", "bfloat16": "BF16", "int8": "Q8_0", "int4": "Q4_0"}  # GGUF's names
FLOAT32 = 0  # ggml's number of the type
QUIET = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
OUTER = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


@contextmanager
def open(checkpoint: Path, work: Path, form: str) -> Iterator[Callable[[list[Ask]], Answered]]:
    """Convert the checkpoint to `form` and load it."""
    file = work / "model.gguf"
    config = json.loads((checkpoint / "config.json").read_text())
    _convert(config, load_file(checkpoint / "model.safetensors"), file, FORMATS[form])
    llama = importlib.import_module(PACKAGE)
    llama.llama_log_set(QUIET, ctypes.c_void_p(0))
    llama.llama_backend_init()
    params = llama.llama_model_default_params()
    params.n_gpu_layers = 0
    model = llama.llama_model_load_from_file(str(file).encode(), params)
    made: dict[int, _Context] = {}

    def answer(wanted: list[Ask]) -> Answered:
        if len(wanted) not in made:
            made[len(wanted)] = _Context(llama, model, len(wanted), config["vocab_size"])
        return made[len(wanted)].answer(wanted)

    yield answer
    for context in made.values():
        context.close()
    llama.llama_model_free(model)


def _convert(config: dict[str, Any], weights: dict[str, np.ndarray], file: Path, form: str) -> None:
    """Write a GGUF file: no tokenizer, and rotary halves interleaved as llama.cpp turns them."""
    gguf = importlib.import_module("gguf")
    importlib.import_module("gguf.quants")
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    names = {f"{theirs}.weight": f"{ours}.weight" for theirs, ours in OUTER.items()}
    for layer in range(config["num_hidden_layers"]):
        for theirs, ours in LAYER.items():
            names[f"model.layers.{layer}.{theirs}.weight"] = f"blk.{layer}.{ours}.weight"
    for theirs, ours in names.items():
        count = {"q_proj": heads, "k_proj": kv_heads}.get(theirs.split(".")[-2])
        weight = _interleaved(weights[theirs], count) if count else weights[theirs]
        if form == "F32" or weight.ndim == 1:
            writer.add_tensor(ours, weight)
        else:
            kind = gguf.GGMLQuantizationType[form]
            writer.add_tensor(ours, gguf.quants.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _interleaved(weight_NK: np.ndarray, heads: int) -> np.ndarray:
    """Rows of each head as pairs (i, i + D/2), where Hugging Face has halves."""
    N, K = weight_NK.shape
    pairs = weight_NK.reshape(heads, 2, N // heads // 2, K).swapaxes(1, 2)
    return np.ascontiguousarray(pairs.reshape(N, K))


class _Context:
    """A model with room for a number of sequences."""

    def __init__(self, llama: Any, model: Any, count: int, vocab: int) -> None:
        params = llama.llama_context_default_params()
        params.n_ctx = params.n_batch = CONTEXT * count
        params.n_seq_max = count
        params.n_threads = params.n_threads_batch = threads()
        params.type_k = params.type_v = FLOAT32
        params.kv_unified = False
        self.llama, self.vocab = llama, vocab
        self.context = llama.llama_init_from_model(model, params)
        self.batch = llama.llama_batch_init(CONTEXT * count, 0, 1)

    def close(self) -> None:
        """Give its memory back."""
        self.llama.llama_batch_free(self.batch)
        self.llama.llama_free(self.context)

    def answer(self, wanted: list[Ask]) -> Answered:
        """Prefill all, then a token for each sequence that is not done."""
        llama = self.llama
        llama.llama_memory_clear(llama.llama_get_memory(self.context), True)
        rows = [(row, list(enumerate(ask.prompt))) for row, ask in enumerate(wanted)]
        tokens: list[list[int]] = [[] for _ in wanted]
        first = 0.0
        start = perf_counter()
        while rows:
            for (row, _), token in zip(rows, self._step(rows), strict=True):
                tokens[row].append(token)
            first = first or perf_counter()
            left = [row for row, _ in rows if len(tokens[row]) < wanted[row].tokens]
            rows = [
                (r, [(len(wanted[r].prompt) + len(tokens[r]) - 1, tokens[r][-1])]) for r in left
            ]
        stop = perf_counter()
        return Answered(tokens, stop - start, stop - first)

    def _step(self, rows: list[tuple[int, list[tuple[int, int]]]]) -> list[int]:
        """The likeliest next token of each sequence, given its new (position, token) pairs."""
        batch, at, last = self.batch, 0, []
        for row, pairs in rows:
            for position, token in pairs:
                batch.token[at], batch.pos[at] = token, position
                batch.n_seq_id[at], batch.seq_id[at][0], batch.logits[at] = 1, row, 0
                at += 1
            batch.logits[at - 1] = 1
            last.append(at - 1)
        batch.n_tokens = at
        if self.llama.llama_decode(self.context, batch):
            raise RuntimeError("llama.cpp: a batch could not be decoded")
        logits = (self.llama.llama_get_logits_ith(self.context, place) for place in last)
        return [int(np.ctypeslib.as_array(row, (self.vocab,)).argmax()) for row in logits]
