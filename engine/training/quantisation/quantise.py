"""Quantise a model folder: linear layers in codes of few bits, the rest as it was.

In comes a Hugging Face folder, out goes one in the GPTQ layout that transformers, vLLM and this
engine read; of ShiftAddLLM's codes, which no layout of theirs holds, one in float16 with what the
codes stand for. Perplexity of what was and what is now is taken on the same text.
"""

import json
import math
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.limits import inside, parse_json, read_bytes, regular
from engine.core.writing import unwritten, written
from engine.kernels.quantised.weight import Quantised
from engine.models.families import read_config
from engine.models.families.fields import read_json
from engine.models.gathered import Cast
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.quantised_tensors import WIDTHS, gptq_tensors
from engine.models.text.tokenizer import Tokenizer
from engine.training.losses.evaluate import score
from engine.training.quantisation.binary_codes import BinaryCodes, shift_add
from engine.training.quantisation.gptq import gptq, rounded_to_nearest
from engine.training.quantisation.rounded_model import factor
from engine.training.quantisation.rounded_model import moments as moments_of

METHODS = ("nearest", "gptq", "shiftadd")
SHIFTS = (2, 3, 4)  # bits that ShiftAddLLM is for
LENGTH = 256  # tokens of a window
RECORD, MADE_BY = "quantised.json", "workbench quantise"  # beside a model: how it was made
COPIED = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "generation_config.json")
WHAT = "the quantised model"


def quantise(
    source: Path, out: Path, bits: int, group: int, method: str, zero: bool, text: str,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:  # fmt: skip
    """Write the quantised folder; facts of it, perplexities among them where there is a `text`.

    GPTQ and ShiftAddLLM are calibrated on the first half of the text, and all are judged on the
    second. ShiftAddLLM's scales lie by eight columns and an eighth of the rows. Raises BadInput.
    """
    if method not in METHODS or bits not in (SHIFTS if method == "shiftadd" else WIDTHS):
        raise BadInput(
            f"quantise: {bits} bits by {method!r}; give 2, 4 or 8 for nearest or gptq, or 2 to 4 "
            "for shiftadd"
        )
    config = read_config(source)
    weights = dict(Cast(Checkpoint(source, config), torch.float32))
    names = [n for n, w in weights.items() if w.ndim == 2 and "proj" in n]
    if not names:
        raise BadInput(f"{source}: {config.architecture} has no linear layers this can quantise")
    for name in names:
        if not torch.isfinite(weights[name]).all():
            raise BadInput(f"{source}: tensor {name!r} has weights that are no numbers; restore it")
    stream = np.array(Tokenizer(source).encode(text), np.int64) if text else np.zeros(0, np.int64)
    calibrated = method != "nearest"
    if calibrated and len(stream) < 2 * LENGTH:
        raise BadInput(
            f"quantise: {method} needs a text of {2 * LENGTH} tokens or more; give --text"
        )
    _check_place(out)
    half = len(stream) // 2
    moments = moments_of(config, weights, stream[:half], LENGTH) if calibrated else {}
    codes: dict[str, Quantised | BinaryCodes] = {}
    for name in names:
        say(f"quantising {name}")
        if method == "gptq":
            codes[name] = gptq(weights[name], moments[name], f"int{bits}", group, zero)
        elif method == "shiftadd":
            codes[name] = shift_add(weights[name], factor(moments[name]), bits)
        else:
            codes[name] = rounded_to_nearest(weights[name], f"int{bits}", group, zero)
    facts = _facts(config, weights, codes, stream[half:])
    told = {"made_by": MADE_BY, "method": method, "bits": bits, "group": group, **facts}
    _write(source, out, weights, codes, zero, told)
    return {"out": str(out), **{k: v for k, v in told.items() if k != "made_by"}}


def _check_place(out: Path) -> None:
    """Raises BadInput where no file can be made in `out`, or where files are there that no earlier
    call wrote, before the work it would hold."""
    made = not out.exists()
    if not made and not _is_ours(out):
        found = sorted(entry.name for entry in out.iterdir() if entry.name[0] != ".")
        if found:
            raise BadInput(
                f"{out}: holds what no quantising wrote ({found[0][:60]}{', …' * (len(found) > 1)})"
                "; choose a new folder or an empty one"
            )
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
        if made:
            out.rmdir()
    except OSError as fault:
        raise unwritten(out, WHAT, fault) from None


def _is_ours(out: Path) -> bool:
    """Whether an earlier call wrote the model in the folder."""
    try:
        told = parse_json(read_bytes(out / RECORD, "text_bytes"), out)
    except (OSError, BadInput, ValueError):
        return False
    return isinstance(told, dict) and told.get("made_by") == MADE_BY


def _facts(
    config: Any,
    weights: dict[str, Tensor],
    codes: dict[str, Quantised | BinaryCodes],
    stream: np.ndarray,
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
    source: Path, out: Path, weights: dict[str, Tensor], codes: dict[str, Quantised | BinaryCodes],
    zero: bool, facts: dict[str, Any],
) -> None:  # fmt: skip
    raw = read_json(source / "config.json")
    raw |= {"dtype": "float16", "torch_dtype": "float16"}
    tensors = {n: w.half().contiguous() for n, w in weights.items() if n not in codes}
    for name, each in codes.items():
        if isinstance(each, BinaryCodes):
            tensors[name] = each.dequantised().half()
            continue
        tensors |= gptq_tensors(name, each)
        raw["quantization_config"] = {
            "quant_method": "gptq", "bits": facts["bits"], "desc_act": False, "sym": not zero,
            "group_size": facts["group"] or -1, "checkpoint_format": "gptq", "lm_head": False,
        }  # fmt: skip
    made = not out.exists()
    try:
        _fill(source, out, tensors, raw, facts)
    except BadInput:
        if made:  # a folder that holds half a model is none
            shutil.rmtree(out, ignore_errors=True)
        raise


def _fill(
    source: Path, out: Path, tensors: dict[str, Tensor], raw: dict[str, Any], facts: dict[str, Any]
) -> None:
    """Every file is whole beside the old one before the first takes its place."""
    there = (name for name in COPIED if (source / name).is_file())
    copied = {name: regular(inside(source, name), "tokenizer_bytes") for name in there}
    texts = {"config.json": raw, RECORD: facts}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise unwritten(out, WHAT, fault) from None
    with ExitStack() as all_of_them:
        names = ("model.safetensors", *texts, *copied)
        part = {
            name: all_of_them.enter_context(written(out / name, WHAT, (SafetensorError,)))
            for name in names
        }
        save_file(tensors, part["model.safetensors"], metadata={"format": "pt"})
        for name, value in texts.items():
            part[name].write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        for name in copied:
            shutil.copyfile(copied[name], part[name])
