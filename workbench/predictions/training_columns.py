"""Columns of a training table as a described run: words that tables use for its knobs.

A column is a knob's path (`split.tensor`) or a word of `WORDS`, whatever its capitals and signs
(`#GPUs`, `Tokens/sec/GPU`); a dash is nothing. A model is told by name or by its shape. Where no
column says how replicas share, they share optimiser states if there are tensor or pipeline ranks
(as Megatron-LM does), else parameters too (as FSDP does). A table with a column of virtual pipeline
ranks is of Megatron-Core, and its runs as its performance recipes have them (`RECIPES`).
"""

import re
from collections.abc import Mapping
from typing import Any

from engine.core.config import from_dict, update
from engine.core.errors import BadInput
from engine.models.loading.public import called, public
from engine.training.step_time.described import TrainingRun
from engine.training.step_time.layer import model_flops
from workbench.cost_model.rows import Cells, LeftOut, dtype_of, sheet_of

Changes = Mapping[str, Any]
WORDS = {
    "cluster.device": "gpu device system accelerator gpu_type hardware",
    "cluster.devices": "gpus devices num_gpus n_gpus world_size",
    "cluster.node": "gpus_per_node node devices_per_node",
    "cluster.network": "network", "cluster.power": "power power_limit_w",
    "split.tensor": "tp tensor tp_size tensor_parallel",
    "split.pipeline": "pp pipeline pp_size pipeline_parallel",
    "split.chunks": "vp vpp interleave_v chunks virtual_pipeline",
    "split.context": "cp context cp_size", "split.expert": "ep expert ep_size",
    "split.shard": "sharding zero shard zero_stage fsdp",
    "recipe.sequence": "seq_len seq sequence seqlen seq_length sequence_length",
    "recipe.microbatch": "microbatch mbs micro_batch micro_batch_size local_batch local_batch_size",
    "recipe.batch": "global_batch gbs batch global_batch_size",
    "recipe.dtype": "precision dtype", "recipe.recompute": "act_ckpt recompute ac",
    "recipe.attention": "attention attn", "recipe.compiled": "compile compiled torch_compile",
}  # fmt: skip
PATHS = {word: path for path, words in WORDS.items() for word in words.split()}
SHAPE = {
    "hidden": "hidden_size", "d_model": "hidden_size", "layers": "num_hidden_layers",
    "n_layers": "num_hidden_layers", "heads": "num_attention_heads",
    "n_heads": "num_attention_heads", "attention_heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads", "ffn": "intermediate_size", "width": "intermediate_size",
    "vocab": "vocab_size", "vocabulary": "vocab_size", "head_dim": "head_dim",
}  # fmt: skip
PLAIN = {
    "hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
    "intermediate_size": "n_inner", "vocab_size": "vocab_size",
}  # fmt: skip
VALUES = {
    "full_shard": "parameters", "fsdp": "parameters", "zero3": "parameters", "zero2": "gradients",
    "shard_grad_op": "gradients", "zero1": "optimizer", "no_shard": "none", "ddp": "none",
    "true": "full", "false": "none", "amp_bf16": "bfloat16", "amp_fp8": "float8",
    "mxfp8": "float8", "fp8_mx": "float8", "fp8_cs": "float8", "fp8_ds": "float8", "op": "half",
    "yes": "full", "selective_op": "half", "no": "none", "off": "none",
}  # fmt: skip
ZERO = ("none", "optimizer", "gradients", "parameters")
WORDED = ("split.shard", "recipe.recompute", "recipe.dtype")  # whose values are words
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
MEASURES = {
    "tokens_per_s_per_gpu": "tokens_sec_gpu tps_gpu tgs tokens_s_gpu tokens_gpu_sec",
    "tokens_per_s": "tokens_sec tps wps", "step_s": "iter_s step_time_s time_per_global_step_s",
    "step_ms": "iter_ms step_time_ms", "tflops_per_gpu": "model_tflop_sec_gpu tflops_gpu",
    "mfu_pct": "mfu",
}  # fmt: skip
MEASURED = {word: name for name, words in MEASURES.items() for word in (name, *words.split())}
NOTHING = ("-", "n/a", "na", "null", "–")  # of a cell
RECIPES = {  # NVIDIA-NeMo/Megatron-Bridge, scripts/performance: rows fused, traffic beside products
    "recipe.compiled": True, "recipe.tensor_overlap": "all", "recipe.fused_gradients": True,
    "recipe.dispatch": "once", "recipe.experts": "each",
}  # fmt: skip
# Of those recipes, whose tokens go by an all-to-all (perf_recipes there, models/gpt_oss): model and
# device as they begin.
ALL_TO_ALL = (("gpt-oss", ""), ("qwen3-235b", "h100"), ("qwen3-235b", "b200"))
TECHNIQUES = {
    "compile": ("recipe.compiled", True),
    "float8": ("recipe.dtype", "float8"),
    "fp8": ("recipe.dtype", "float8"),
    "async": ("recipe.tensor_overlap", "all"),
}


def plain(cells: Cells) -> Cells:
    """The same line with columns named plainly and nothing where a dash stands."""
    line = {
        re.sub(r"[^a-z0-9._]+", "_", name.lower()).strip("_"): (
            "" if text.strip().lower() in NOTHING else text
        )
        for name, text in cells.line.items()
    }
    return Cells(cells.where, line, cells.origin)


def described(
    cells: Cells, changes: Changes, knobs: Changes, shape: Changes
) -> TrainingRun | LeftOut:
    """The run of a row. `knobs`, `shape`: what its table says of all rows; `changes`: what the
    person says. Raises BadInput for a cell that says nothing."""
    told: dict[str, Any] = dict(knobs)
    for column, text in cells.line.items():
        path = PATHS.get(column, column if "." in column else "")
        if path and text.strip():
            told[path] = _value(cells, path, column)
    given = told
    if any(PATHS.get(column) == "split.chunks" for column in cells.line):
        given, told = told, {**RECIPES, **told}
    for word, (path, value) in TECHNIQUES.items():
        if word in cells.line.get("techniques", "").lower():
            told[path] = value
    if not told.get("cluster.device"):
        name = next((cells.line[w] for w in _words("cluster.device") if cells.line.get(w)), "")
        why = f"device {name!r} has no data sheet" if name else "no column tells the device"
        if "cluster.device" not in changes:
            return LeftOut(cells.where, why)
        told.pop("cluster.device", None)
    if "split.shard" not in told and {
        told.get(f"split.{axis}", 1) for axis in ("tensor", "pipeline")
    } != {1}:
        told["split.shard"] = "optimizer"
    architecture = _architecture(cells, shape)
    name = "" if architecture else called(cells.text("model"))
    if not architecture and name not in public():
        return LeftOut(cells.where, f"model {name!r} is not in the dataset")
    try:
        run = from_dict(TrainingRun, {"model": name, "architecture": architecture})
        run = update(run, told)
        split = run.split
        apart = split.expert * split.tensor > run.cluster.joined()
        # What leaves a node, where chunks of layers interleave: else Megatron-Core has none.
        if told.keys() >= RECIPES.keys() and apart and split.chunks > 1:
            run = update(run, {"recipe.expert_overlap": True})
        by_all = any(
            run.model.startswith(model) and run.cluster.device.startswith(device)
            for model, device in ALL_TO_ALL
        )
        if by_all and told.keys() >= RECIPES.keys() and "recipe.dispatch" not in given:
            run = update(run, {"recipe.dispatch": "copies"})
        return update(run, changes)
    except BadInput as fault:
        raise BadInput(f"{cells.where}: {fault}") from None


def _words(path: str) -> list[str]:
    return WORDS[path].split()


def _value(cells: Cells, path: str, column: str) -> Any:
    text = cells.text(column)
    if path == "cluster.device":
        return sheet_of(text)
    if column == "fsdp" and text.isdecimal():
        return "parameters" if text.strip("0") else "optimizer"
    if path == "split.shard" and text in ("0", "1", "2", "3"):
        return ZERO[int(text)]
    if path in WORDED:
        word = text.lower().replace("-", "_").replace(" ", "_")
        return VALUES.get(word, dtype_of(word) if path == "recipe.dtype" else word)
    if path == "recipe.compiled":
        return FLAGS.get(text.lower(), text)
    try:
        return cells.count(column, 0)
    except BadInput:
        return FLAGS.get(text.lower(), text)


def _architecture(cells: Cells, shape: Changes) -> dict[str, Any]:
    """config.json's fields of a model told by its shape: a GPT where no width of a gated
    feed-forward is told, else a Llama."""
    found = {SHAPE[key]: value for key, value in shape.items()}
    for column in SHAPE:
        if cells.line.get(column, "").strip():
            found[SHAPE[column]] = cells.count(column)
    if not {"hidden_size", "num_hidden_layers", "num_attention_heads"} <= set(found):
        return {}
    found.setdefault("vocab_size", 51200)
    if (
        cells.line.get("gated", "").lower() in ("true", "1", "yes")
        or "num_key_value_heads" in found
    ):
        return {"architectures": ("LlamaForCausalLM",), **found}
    found.setdefault("intermediate_size", 4 * found["hidden_size"])
    plain = {PLAIN[key]: value for key, value in found.items() if key in PLAIN}
    positions = next((cells.count(c) for c in ("seq_len", "seq") if cells.line.get(c)), 2048)
    return {
        "architectures": ("GPT2LMHeadModel",), **plain, "n_positions": positions,
        "tie_word_embeddings": True,
    }  # fmt: skip


def measured_seconds(cells: Cells, run: TrainingRun) -> float:
    """Seconds of a step, from whichever measure the row has."""
    tokens = run.batch * run.recipe.sequence
    column = next((each for each in MEASURED if cells.line.get(each, "").strip()), "")
    name, value = MEASURED.get(column, ""), cells.number(column or next(iter(MEASURES)), 1e-9)
    if name in ("step_s", "step_ms"):
        return value * (1e-3 if name == "step_ms" else 1.0)
    if name.startswith("tokens"):
        return tokens / value / (run.cluster.devices if name.endswith("gpu") else 1)
    flops = model_flops(run.config(), run.recipe.sequence, tokens) / run.cluster.devices
    if name == "mfu_pct":
        peaks = run.cluster.sheet().peaks
        share = value / 100 if value > 1 else value
        return flops / (share * (peaks.get("bfloat16") or peaks["float16"]))
    return flops / (value * 1e12)
