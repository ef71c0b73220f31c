"""A split of a training run as knobs: of the study of pipelines, or of a predicted run."""

from collections.abc import Mapping
from shlex import quote

from engine.cluster.parallelism import Split
from engine.training.pipeline.stage_costs.described import Described
from engine.training.step_time.described import PassRecipe, StageSplit, TrainingRun
from widgets.knobs.config_text import changes, spelled

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


def schedule_knobs(run: TrainingRun) -> dict[str, object]:
    """Dotted knob path -> value, in the order they must be set, with which the study of pipelines
    plays a described run's schedule. Raises BadInput where the run does not divide."""
    same = Described(
        model=run.model,
        architecture=run.architecture,
        cluster=run.cluster,
        split=StageSplit(**{name: getattr(run.split, name) for name in StageSplit.model_fields}),
        recipe=PassRecipe(**{name: getattr(run.recipe, name) for name in PassRecipe.model_fields}),
    )
    chunks = run.split.chunks
    return {
        "passes": "described",
        "ranks": run.split.pipeline,
        "microbatches": run.microbatches,
        "schedule": "interleaved_1f1b" if chunks > 1 else "1f1b",
        **({"schedule.chunks": chunks} if chunks > 1 else {}),
        **{f"passes.{path}": value for path, value in changes(same, Described()).items()},
    }


def planned_knobs(run: TrainingRun) -> dict[str, object]:
    """Dotted knob path -> value of a search for other splits of a run with a public model."""
    return {
        "architecture": run.model,
        "devices": run.cluster.devices,
        "batch": run.batch,
        "model.device": run.cluster.device,
        "model.sequence": run.recipe.sequence,
    }


def schedule_command(run: TrainingRun) -> str:
    """The command line that plays a described run's schedule in the study of pipelines."""
    return f"workbench run megatron {settings(schedule_knobs(run))}"


def settings(knobs: Mapping[str, object]) -> str:
    """Knobs as a command line sets them."""
    return " ".join(f"--set {quote(f'{path}={spelled(value)}')}" for path, value in knobs.items())


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
