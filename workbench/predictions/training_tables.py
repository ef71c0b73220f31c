"""Layouts of training tables: a row's columns as a described run, and what was measured of it.

Any table: columns are knobs of `TrainingRun` (`split.tensor`) or the words of `WORDS` (tp, gpus,
seq_len …), a model by name or by shape, and one of `MEASURES`. Three published tables whose facts
stand in their notes have layouts of their own: MosaicML's llm-foundry benchmarks, Megatron-LM's
table 1 (arXiv 2104.04473) and table 5 of arXiv 2205.05198.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from engine.core.config import from_dict, update
from engine.core.errors import BadInput
from engine.training.step_time.described import TrainingRun
from engine.training.step_time.interval import interval
from engine.training.step_time.layer import model_flops
from engine.training.step_time.step import Prepared
from workbench.cost_model.rows import Cells, LeftOut, dtype_of, sheet_of
from workbench.predictions.prediction import Estimate
from workbench.predictions.score import Scored
from workbench.predictions.training import KIND

Changes = Mapping[str, Any]
WORDS = {
    "gpu": "cluster.device", "device": "cluster.device", "system": "cluster.device",
    "gpus": "cluster.devices", "devices": "cluster.devices", "num_gpus": "cluster.devices",
    "gpus_per_node": "cluster.node", "node": "cluster.node", "network": "cluster.network",
    "tp": "split.tensor", "tensor": "split.tensor", "pp": "split.pipeline",
    "pipeline": "split.pipeline", "vp": "split.chunks", "interleave_v": "split.chunks",
    "chunks": "split.chunks", "cp": "split.context", "context": "split.context",
    "ep": "split.expert", "expert": "split.expert", "sharding": "split.shard",
    "zero": "split.shard", "shard": "split.shard", "seq_len": "recipe.sequence",
    "seq": "recipe.sequence", "sequence": "recipe.sequence", "seqlen": "recipe.sequence",
    "microbatch": "recipe.microbatch", "mbs": "recipe.microbatch",
    "micro_batch": "recipe.microbatch", "local_batch": "recipe.microbatch",
    "global_batch": "recipe.batch", "gbs": "recipe.batch", "batch": "recipe.batch",
    "precision": "recipe.dtype", "dtype": "recipe.dtype", "act_ckpt": "recipe.recompute",
    "recompute": "recipe.recompute", "attention": "recipe.attention",
    "compile": "recipe.compiled", "compiled": "recipe.compiled",
}  # fmt: skip
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
    "op": "half", "selective_op": "half", "yes": "full", "no": "none",
}  # fmt: skip
ZERO = ("none", "optimizer", "gradients", "parameters")
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
MEASURES = ("tokens_per_s_per_gpu", "tokens_per_s", "step_s", "iter_s", "iter_ms", "step_ms",
            "tflops_per_gpu", "mfu_pct")  # fmt: skip


def any_table(cells: Cells, changes: Changes) -> Iterator[Scored | LeftOut]:
    """A row whose columns say all of it."""
    run = described(cells, changes, {}, {})
    if isinstance(run, LeftOut):
        yield run
        return
    yield _scored(cells, run, _measured(cells, run), cells.line.get("model", "").strip())


def foundry(cells: Cells, changes: Changes) -> Iterator[Scored | LeftOut]:
    """MPT under FSDP: tied embeddings, learnt positions, checkpoints that stop early, and on an
    A100 its Triton port of FlashAttention's first version."""
    pure = cells.text("mp_mode") == "PURE"
    ampere = "a100" in cells.text("gpu").lower()
    knobs = {
        "cluster.network": "infiniband-200" if ampere else "infiniband-400",
        "recipe.gradients": "bfloat16" if pure else "float32",
        "recipe.attention": "flash-1" if ampere else "flash-2",
    }
    run = described(cells, changes, knobs, {"vocab": 50368})
    if isinstance(run, LeftOut):
        yield run
        return
    seconds = run.batch * run.recipe.sequence / run.cluster.devices / cells.number(
        "tokens_per_s_per_gpu", 1e-9
    )  # fmt: skip
    yield _scored(cells, run, seconds, cells.text("model"))


MEGATRON = {
    "cluster.network": "infiniband-200", "split.shard": "none", "recipe.sequence": 2048,
    "recipe.dtype": "float16", "recipe.attention": "unfused", "recipe.dropout": True,
    "recipe.overlap": False, "recipe.early_stop": False, "recipe.compiled": True,
}  # fmt: skip


def table_1(cells: Cells, changes: Changes) -> Iterator[Scored | LeftOut]:
    """Megatron-LM on Selene's A100: seconds from its formula 3, recomputation counted."""
    layers, each = cells.count("layers"), cells.line["virtual_pipeline_layers_per_stage"].strip()
    chunks = layers // (cells.count("pp") * int(each)) if each else 1
    knobs = {
        **MEGATRON, "cluster.device": "a100-sxm-80gb", "split.chunks": chunks,
        "split.sequence_parallel": False, "recipe.recompute": "full",
    }  # fmt: skip
    run = described(cells, changes, knobs, {"vocab": 51200})
    if isinstance(run, LeftOut):
        yield run
        return
    h, s, v = cells.count("hidden"), run.recipe.sequence, 51200
    flops = 96 * run.batch * s * layers * h * h * (1 + s / (6 * h) + v / (16 * layers * h))
    rate = cells.number("tflops_per_gpu", 1e-9) * 1e12
    yield _scored(cells, run, flops / run.cluster.devices / rate, "table 1")


def table_5(cells: Cells, changes: Changes) -> Iterator[Scored | LeftOut]:
    """The same with full recomputation, and with sequence parallelism and selective one."""
    for column, recompute, split in (("iter_s_full", "full", False),
                                     ("iter_s_seqsel", "selective", True)):  # fmt: skip
        knobs = {
            **MEGATRON, "cluster.device": "a100-sxm-80gb", "split.sequence_parallel": split,
            "recipe.recompute": recompute,
            "recipe.tensor_overlap": "backward",
            "recipe.fused_gradients": True,
        }  # fmt: skip
        run = described(cells, changes, knobs, {"vocab": 51200})
        if isinstance(run, LeftOut):
            yield run
            return
        yield _scored(cells, run, cells.number(column, 1e-9), f"table 5, {recompute}")


def described(
    cells: Cells, changes: Changes, knobs: Changes, shape: Changes
) -> TrainingRun | LeftOut:
    """The run of a row. `knobs`, `shape`: what its table says of all rows; `changes`: what the
    person says. Raises BadInput for a cell that says nothing."""
    told: dict[str, Any] = dict(knobs)
    for column, text in cells.line.items():
        path = WORDS.get(column, column if "." in column else "")
        if path and text.strip():
            told[path] = _value(cells, path, column)
    if not told.get("cluster.device"):
        name = cells.line.get("gpu") or cells.line.get("device") or cells.line.get("system") or ""
        why = f"device {name!r} has no data sheet" if name else "no column tells the device"
        if "cluster.device" not in changes:
            return LeftOut(cells.where, why)
        del told["cluster.device"]
    architecture = _architecture(cells, shape)
    name = "" if architecture else _named(cells)
    try:
        run = from_dict(TrainingRun, {"model": name, "architecture": architecture})
        return update(run, {**told, **changes})
    except BadInput as fault:
        raise BadInput(f"{cells.where}: {fault}") from None


def _value(cells: Cells, path: str, column: str) -> Any:
    text = cells.text(column)
    if path == "cluster.device":
        return sheet_of(text)
    if path == "split.shard" and text in ("0", "1", "2", "3"):
        return ZERO[int(text)]
    if path == "recipe.compiled":
        return FLAGS.get(text.lower(), text)
    word = dtype_of(text) if path == "recipe.dtype" else text
    word = VALUES.get(word.lower(), word)
    try:
        return cells.count(column, 0)
    except BadInput:
        return word


def _named(cells: Cells) -> str:
    return cells.text("model").rsplit("/", 1)[-1].lower().removesuffix("-hf")


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
    positions = next((int(cells.line[c]) for c in ("seq_len", "seq") if cells.line.get(c)), 2048)
    return {
        "architectures": ("GPT2LMHeadModel",), **plain, "n_positions": positions,
        "tie_word_embeddings": True,
    }  # fmt: skip


def _measured(cells: Cells, run: TrainingRun) -> float:
    """Seconds of a step, from whichever measure the row has."""
    tokens = run.batch * run.recipe.sequence
    column = next((each for each in MEASURES if cells.line.get(each, "").strip()), MEASURES[0])
    value = cells.number(column, 1e-9)
    if column.endswith(("_s", "_ms")) and not column.startswith("tokens"):
        return value * (1e-3 if column.endswith("_ms") else 1.0)
    if column.startswith("tokens"):
        return tokens / value / (run.cluster.devices if column.endswith("gpu") else 1)
    flops = model_flops(run.config(), run.recipe.sequence, tokens) / run.cluster.devices
    if column == "mfu_pct":
        sheet = run.cluster.sheet()
        return flops / (value / 100 * (sheet.peaks.get("bfloat16") or sheet.peaks["float16"]))
    return flops / (value * 1e12)


def _scored(cells: Cells, run: TrainingRun, seconds: float, name: str) -> Scored:
    try:
        prepared = Prepared(run)
        predicted, wide = prepared.at()[0], interval(prepared)
    except BadInput as fault:
        raise BadInput(f"{cells.where}: {fault}") from None
    split, recipe = run.split, run.recipe
    what = (
        f"{name} x{run.cluster.devices} t{split.tensor} p{split.pipeline} s{recipe.sequence} "
        f"b{recipe.microbatch} {recipe.recompute}"
    )
    told = Estimate(predicted, wide.low, wide.high, "s")
    return Scored(cells.where, KIND, f"{name}, {run.cluster.device}", what, seconds, told)


LAYOUTS: tuple[
    tuple[Callable[[set[str]], bool], Callable[..., Iterator[Scored | LeftOut]]], ...
] = (
    (lambda head: {"mp_mode", "act_ckpt", "num_params"} <= head, foundry),
    (lambda head: {"virtual_pipeline_layers_per_stage", "pct_of_312"} <= head, table_1),
    (lambda head: {"iter_s_full", "iter_s_seqsel", "interleave_v"} <= head, table_5),
    (lambda head: bool(head & set(MEASURES)) and bool(head & {"model", *SHAPE}), any_table),
)
