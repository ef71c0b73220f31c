"""A split of the parallelism search as knobs: of the study of pipelines, or of a predicted run."""

from engine.cluster.parallelism import Split
from engine.training.step_time.described import TrainingRun
from widgets.knobs.config_text import changes

PASSES = (
    "hidden", "layers", "heads", "vocabulary", "sequence", "tensor", "context", "data",
    "microbatch", "recompute", "sequence_parallel", "device", "node", "network",
)  # fmt: skip


def knobs_of(split: Split) -> dict[str, object]:
    """Dotted knob path -> value, in the order they must be set."""
    turned: dict[str, object] = {
        "ranks": split.pipeline,
        "microbatches": split.microbatches,
        "schedule": "interleaved_1f1b" if split.chunks > 1 else "1f1b",
        **({"schedule.chunks": split.chunks} if split.chunks > 1 else {}),
    }
    return turned | {f"passes.{name}": getattr(split.passes, name) for name in PASSES}


def predicted_knobs(run: TrainingRun) -> dict[str, object]:
    """Dotted knob path -> value that `workbench predict` and its page must set."""
    return changes(run, TrainingRun())


def words_of(run: TrainingRun) -> str:
    """How a described run is split, as people say it."""
    split, recipe = run.split, run.recipe
    sizes = (
        ("tensor", split.tensor),
        ("pipeline", split.pipeline),
        ("context", split.context),
        ("expert", split.expert),
        ("data", run.replicas),
    )
    parts = [f"{name} {size}" for name, size in sizes if size > 1]
    chunks = f", {split.chunks} chunks a rank" if split.chunks > 1 else ""
    shared = {"parameters": "parameters sharded", "optimizer": "optimiser states sharded"}
    kept = {
        "none": "all kept", "half": "every other product recomputed", "full": "all recomputed",
        "selective": "attention recomputed",
    }  # fmt: skip
    return (
        f"{' × '.join(parts) or 'one device'}; microbatches of {recipe.microbatch}{chunks}; "
        f"{shared.get(split.shard, 'nothing sharded')}; activations: {kept[recipe.recompute]}"
    )
