"""Quantise a model folder: linear layers in codes of few bits, the rest as it was.

In comes a Hugging Face folder, out goes one in the GPTQ layout that transformers, vLLM and this
engine read. Perplexity of what was and what is now is taken on the same text.
"""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.writing import unwritten, write_text, written
from engine.kernels.quantised.weight import Quantised
from engine.models.families import read_config
from engine.models.gathered import Cast
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.quantised_tensors import WIDTHS, gptq_tensors
from engine.models.text.tokenizer import Tokenizer
from engine.training.losses.evaluate import Linears, score
from engine.training.quantisation.gptq import gptq, rounded_to_nearest

METHODS = ("nearest", "gptq")
LENGTH = 256  # tokens of a window


def quantise(
    source: Path, out: Path, bits: int, group: int, method: str, zero: bool, text: str,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:  # fmt: skip
    """Write the quantised folder; facts of it, perplexities among them where there is a `text`.

    GPTQ is calibrated on the first half of the text, and both are judged on the second. Raises
    BadInput.
    """
    if bits not in WIDTHS or method not in METHODS:
        raise BadInput(f"quantise: {bits} bits by {method!r}; give 2, 4 or 8, nearest or gptq")
    config = read_config(source)
    weights = dict(Cast(Checkpoint(source, config), torch.float32))
    names = [n for n, w in weights.items() if w.ndim == 2 and "proj" in n]
    if not names:
        raise BadInput(f"{source}: {config.architecture} has no linear layers this can quantise")
    stream = np.array(Tokenizer(source).encode(text), np.int64) if text else np.zeros(0, np.int64)
    if method == "gptq" and len(stream) < 2 * LENGTH:
        raise BadInput(f"quantise: GPTQ needs a text of {2 * LENGTH} tokens or more; give --text")
    half = len(stream) // 2
    moments = _moments(config, weights, stream[:half]) if method == "gptq" else {}
    codes: dict[str, Quantised] = {}
    for name in names:
        say(f"quantising {name}")
        if method == "gptq":
            codes[name] = gptq(weights[name], moments[name], f"int{bits}", group, zero)
        else:
            codes[name] = rounded_to_nearest(weights[name], f"int{bits}", group, zero)
    facts = _facts(config, weights, codes, stream[half:])
    _write(source, out, weights, codes, bits, group, zero)
    return {"out": str(out), "method": method, "bits": bits, "group": group, **facts}


def _moments(config: Any, weights: dict[str, Tensor], stream: np.ndarray) -> dict[str, Tensor]:
    """Σ x xᵀ of what each linear layer is fed with."""
    found: dict[str, Tensor] = {}

    def watch(name: str, x: Tensor, weight: Tensor) -> Tensor:
        x_MK = x.reshape(-1, x.shape[-1])
        found[name] = found.get(name, torch.zeros(())) + x_MK.T @ x_MK
        return F.linear(x, weight)

    with Linears(weights, watch):
        score(config, weights, stream, LENGTH)
    return found


def _facts(
    config: Any, weights: dict[str, Tensor], codes: dict[str, Quantised], stream: np.ndarray
) -> dict[str, Any]:
    held = sum(each.codes_NK.size for each in codes.values())
    bits = sum(each.bits_per_weight * each.codes_NK.size for each in codes.values()) / held
    found: dict[str, Any] = {"layers": len(codes), "weights": held, "bits_per_weight": bits}
    if len(stream) > LENGTH:
        changed = weights | {name: each.dequantised() for name, each in codes.items()}
        for name, used in (("perplexity_before", weights), ("perplexity", changed)):
            found[name] = math.exp(score(config, used, stream, LENGTH).loss)
        found["tokens"] = len(stream) - 1
    return found


def _write(
    source: Path, out: Path, weights: dict[str, Tensor], codes: dict[str, Quantised], bits: int,
    group: int, zero: bool,
) -> None:  # fmt: skip
    raw = json.loads((source / "config.json").read_text(encoding="utf-8"))
    raw["quantization_config"] = {
        "quant_method": "gptq", "bits": bits, "group_size": group or -1, "desc_act": False,
        "sym": not zero, "checkpoint_format": "gptq", "lm_head": False,
    }  # fmt: skip
    raw |= {"dtype": "float16", "torch_dtype": "float16"}
    tensors = {n: w.half().contiguous() for n, w in weights.items() if n not in codes}
    for name, each in codes.items():
        tensors |= gptq_tensors(name, each)
    made = not out.exists()
    try:
        _fill(source, out, tensors, raw)
    except BadInput:
        if made:  # a folder that holds half a model is none
            shutil.rmtree(out, ignore_errors=True)
        raise


def _fill(source: Path, out: Path, tensors: dict[str, Tensor], raw: dict[str, Any]) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            if (source / file).is_file():
                shutil.copyfile(source / file, out / file)
    except OSError as fault:
        raise unwritten(out, "the quantised model", fault) from None
    with written(out / "model.safetensors", "the quantised model", (SafetensorError,)) as part:
        save_file(tensors, part, metadata={"format": "pt"})
    write_text(out / "config.json", json.dumps(raw, indent=2) + "\n", "the model's config")
