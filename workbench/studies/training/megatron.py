"""Megatron-LM: tensor, pipeline and data parallelism composed, schedules on a virtual clock."""

from engine.cluster.pipeline import run
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.stage_costs.transformer import Transformer
from engine.training.plan.schedules.interleaved_1f1b import Interleaved
from workbench.studies.training._bubbles import CLAIMS as BUBBLES
from workbench.studies.training._bubbles import REGIMES as SEARCHES
from workbench.studies.training._cluster import CONTENDED, FAILING
from workbench.studies.training._composed import CLAIMS as COMPOSED
from workbench.studies.training._composed import COMPOSED as MESH
from workbench.studies.training._megatron import changes, rows
from workbench.studies.training._published import CLAIMS as PUBLISHED
from workbench.studies.training._published import REGIMES, TRILLION
from workbench.studies.training._real_ranks import CLAIMS, REAL
from workbench.studies.training._real_ranks import REGIMES as PASSES
from workbench.study import Changes, Study

EQUAL: Changes = {
    "passes": "given",
    "ranks": 32,
    "microbatches": 256,
    "schedule": "zb_h1",
}
SEARCHED: Changes = {
    "passes": "given",
    "passes.backward_weight": 0.006,
    "passes.kept": 0.5,
    "ranks": 8,
    "microbatches": 32,
    "schedule": "zero_bubble_search",
    "memory_limit": 15.0,
}


STUDY = Study(
    slug="megatron",
    driver=run,
    config=PipelineConfig(
        schedule=Interleaved(chunks=2), ranks=8, microbatches=48, passes=Transformer()
    ),
    views=("schedule", "topology"),
    about=(
        "One step of training a GPT with its layers dealt over pipeline ranks, each layer split "
        "over tensor ranks and the batch over replicas. The plan, who does which microbatch's "
        "forward and backward in what order, is data: GPipe, 1F1B, interleaved 1F1B, the "
        "zero-bubble orders, one searched for under a memory limit, or one you write. A virtual "
        "clock plays it with pass times counted from the model's shape, or given outright; each "
        "rank's work, waiting and memory stand on one axis and reflow as you turn a knob. "
        "`executor` carries the plan out on real ranks of this machine, a small model in place "
        "of the large, its measured spans above the clock's. `cluster` plays all replicas on a "
        "described cluster, whose links messages and the gradients' sum share; `executor.faults` "
        "plays many steps, with uneven passes, failures and checkpoints. The default is the "
        "145-billion-parameter run on 1,536 A100."
    ),
    tries=(
        ("32 ranks, 256 microbatches, ZB-H1", EQUAL),
        ("Four real ranks beside the clock", REAL),
        ("1T parameters on 3,072 A100", TRILLION),
    ),
    presets={
        "equal-passes": EQUAL,
        "searched": SEARCHED,
        "real-ranks": REAL,
        "real-mesh": MESH,
        "shared-links": CONTENDED,
        "failures": FAILING,
        **{
            row["model"].lower(): changes(row)
            for row in rows("weak_scaling")
            if row["model"] != "145B"
        },
        **{row["model"].lower(): changes(row, "selective", True) for row in rows("recomputation")},
    },
    claims=(
        *BUBBLES,
        *PUBLISHED,
        *CLAIMS,
        *COMPOSED,
    ),
    regimes=(*REGIMES, *SEARCHES, *PASSES),
    limits=(
        "Without `executor.faults` one step, and nothing fails; with them a failure stops all, "
        "and detection takes no time of its own. On a named cluster flows share links as fluids, "
        "at once and fairly, switches spread load perfectly, and tensor and context ranks' traffic "
        "stays in the pass times. Real ranks share this machine's cores: paced passes are "
        "computed, "
        "then sleep until they have taken as long as the config says, a stand-in for devices of "
        "their own; unpaced ones slow each other down where there are more ranks than cores. "
        "Matrix products all run at one efficiency, whatever their size, so small shapes come out "
        "too fast and large ones too slow; norms and softmax at the memory bandwidth of the "
        "data sheet, links at an assumed 0.8 of theirs. Each pass waits for one transfer of its "
        "tensor, and nothing of the gradients' all-reduce is hidden. Memory counts "
        "the layers' matrices and activations; embeddings and buffers are left out, as in the "
        "published figures. Bubble rates of zero-bubble orders are of the longest rank's own time; "
        "published interleaved ones come out with `wires.awaited` set to first, which lets passes "
        "begin before their tensors are there."
    ),
)
