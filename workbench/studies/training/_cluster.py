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
    "executor": "modelled",
    "executor.faults.steps": 2000,
    "executor.faults.jitter": 0.1,
    "executor.faults.mtbf": 400.0,
    "executor.faults.write": 0.5,
    "executor.faults.restart": 2.0,
}
