"""Settings of a pipeline on a cluster whose links are shared, and of one whose devices fail."""

from workbench.study import Changes

CONTENDED: Changes = {
    "passes": "given",
    "passes.boundary": 1e8,
    "passes.gradients": 2e9,
    "ranks": 4,
    "microbatches": 8,
    "schedule": "1f1b",
    "cluster.name": "ethernet-pods",
    "cluster.replicas": 4,
    "cluster.neighbours": "stages",
}
FAILING: Changes = {
    "passes": "given",
    "ranks": 4,
    "microbatches": 8,
    "schedule": "1f1b",
    "execution": "modelled",
    "execution.faults.steps": 2000,
    "execution.faults.jitter": 0.1,
    "execution.faults.mtbf": 400.0,
    "execution.faults.write": 0.5,
    "execution.faults.restart": 2.0,
}
