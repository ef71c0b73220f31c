"""Layouts of training tables: each row as a described run beside what was measured of it.

Any table whose columns say all of a run (`workbench.predictions.training_columns`), and three
published ones whose facts stand in their notes: MosaicML's llm-foundry benchmarks, Megatron-LM's
table 1 (arXiv 2104.04473) and table 5 of arXiv 2205.05198.
"""

from collections.abc import Callable, Iterator

from engine.core.errors import BadInput
from engine.training.step_time.described import TrainingRun
from engine.training.step_time.interval import interval
from engine.training.step_time.step import Prepared
from workbench.cost_model.rows import Cells, LeftOut
from workbench.predictions.prediction import Estimate
from workbench.predictions.score import Scored
from workbench.predictions.training import KIND
from workbench.predictions.training_columns import (
    MEASURED,
    SHAPE,
    Changes,
    described,
    measured_seconds,
    plain,
)


def any_table(cells: Cells, changes: Changes) -> Iterator[Scored | LeftOut]:
    """A row whose columns say all of it."""
    cells = plain(cells)
    run = described(cells, changes, {}, {})
    if isinstance(run, LeftOut):
        yield run
        return
    yield _scored(cells, run, measured_seconds(cells, run), cells.line.get("model", "").strip())


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
    layers, each = cells.count("layers"), "virtual_pipeline_layers_per_stage"
    chunks = layers // (cells.count("pp") * cells.count(each)) if cells.line[each].strip() else 1
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


def _scored(cells: Cells, run: TrainingRun, seconds: float, name: str) -> Scored | LeftOut:
    try:
        prepared = Prepared(run)
        predicted, wide = prepared.at()[0], interval(prepared)
    except BadInput as fault:
        return LeftOut(cells.where, str(fault))
    split, recipe = run.split, run.recipe
    what = (
        f"{name} x{run.cluster.devices} t{split.tensor} p{split.pipeline} s{recipe.sequence} "
        f"b{recipe.microbatch} {recipe.recompute}"
    )
    told = Estimate(predicted, wide.low, wide.high, "s")
    return Scored(cells.where, KIND, f"{name}, {run.cluster.device}", what, seconds, told)


def _says(head: set[str], words: set[str]) -> bool:
    return bool(set(plain(Cells("", dict.fromkeys(head, ""), "")).line) & words)


LAYOUTS: tuple[
    tuple[Callable[[set[str]], bool], Callable[..., Iterator[Scored | LeftOut]]], ...
] = (
    (lambda head: {"mp_mode", "act_ckpt", "num_params"} <= head, foundry),
    (lambda head: {"virtual_pipeline_layers_per_stage", "pct_of_312"} <= head, table_1),
    (lambda head: {"iter_s_full", "iter_s_seqsel", "interleave_v"} <= head, table_5),
    (lambda head: _says(head, set(MEASURED)) and _says(head, {"model", *SHAPE}), any_table),
)
