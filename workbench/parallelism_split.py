"""A split of the parallelism search as knobs of the study of pipelines, which plays it."""

from engine.cluster.parallelism import Split

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
