"""The plan on a mesh of real ranks: tensor, pipeline and data parallelism held to one process."""

from engine.cluster.pipeline import ERROR
from engine.core.config import update
from engine.core.events import Level
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.executors.mesh import OnMesh
from workbench.study import Break, Changes, Claim, Figure, Outcome, Reported, RunConfig

COMPOSED: Changes = {
    "passes": "given",
    "ranks": 2,
    "microbatches": 4,
    "schedule": "1f1b",
    "executor": "mesh",
}
SUMS = 1e-5  # of a gradient's largest number
FEW = ({"executor.tensor": 2},)
MANY = (
    *FEW,
    {"executor.tensor": 1, "executor.data": 2, "executor.zero": "optimizer"},
    {"executor.tensor": 2, "executor.data": 2, "schedule": "interleaved_1f1b"},
    {"executor.tensor": 2, "executor.context": 2, "schedule": "zb_h1"},
    {"ranks": 1, "microbatches": 1, "executor.data": 2, "executor.zero": "weights"},
)


def composed(config: PipelineConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Meshes of four ranks (more, and of eight, where it may take its time) against one process."""
    kept: Changes = {}
    if isinstance(config.executor, OnMesh):
        kept = {"executor.left_out": config.executor.left_out}
    errors = []
    for mesh in FEW if fast else MANY:
        log = run_config(update(config, {**COMPOSED, **kept, **mesh}))
        errors += [e.value for e in log.of(Level) if e.name == ERROR]
    return Outcome(
        "largest difference at most 1e-5 of a gradient's largest number",
        f"{max(errors):.2g} (worst of {len(errors)} meshes)",
        max(errors) <= SUMS,
        figure=Figure.exact(max(errors)),
        needed=SUMS,
    )


CLAIMS = (
    Claim(
        id="exact-composed",
        sentence="Tensor, pipeline and data ranks on one mesh find the gradients of one process.",
        paper="strict optimiser semantics under all three (sections 2 and 3)",
        grade="exact",
        check=composed,
        reported=Reported(0.0, "equal", tolerance=SUMS),
        finding="reproduced",
        why="no difference, but for the order in which 32-bit numbers are summed",
        broken=(
            Break(
                {"executor": "mesh", "executor.left_out": "activations"},
                True,
                "the tensor ranks' sum of activations is not made",
            ),
        ),
    ),
)
