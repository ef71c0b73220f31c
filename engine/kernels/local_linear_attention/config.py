"""What a study of local linear attention runs: regression tasks, solver, and shapes for memory."""

from typing import Literal

from engine.core.config import Config, knob

SolverName = Literal["conjugate", "formed"]


class LocalLinearConfig(Config):
    """Tasks whose target changes over time, and one problem to solve and weigh."""

    solver: SolverName = knob(
        "conjugate", "matrix-free conjugate gradients, or each query's matrix formed and solved"
    )
    ridge: float = knob(
        0.01, "penalty on slopes; large gives softmax attention", low=1e-6, high=1e6, log=True
    )
    iterations: int = knob(64, "conjugate-gradient steps at most", low=1, high=512, log=True)
    tolerance: float = knob(1e-6, "relative residual to stop at", low=1e-12, high=0.5, log=True)
    queries: int = knob(64, "queries of one tile", low=8, high=512)
    tasks: int = knob(16, "regression tasks", low=4, high=256, group="Tasks")
    length: int = knob(256, "pairs of a task", low=32, high=2048, unit="tokens", group="Tasks")
    width: int = knob(8, "numbers of a key and of a value", low=2, high=64, group="Tasks")
    regimes: int = knob(
        4, "times the target changes, plus one; 1 is stationary", low=1, high=32, group="Tasks"
    )
    spread: float = knob(
        0.5, "how far keys of a regime lie from its centre", low=0.05, high=5.0, group="Tasks"
    )
    noise: float = knob(0.05, "standard deviation of values", low=0.0, high=2.0, group="Tasks")
    stale: bool = knob(
        False, "each answer is read at the query before, which is wrong", group="Tasks"
    )
    widest: int = knob(64, "widest head that memory is measured at", low=16, high=128)
    seed: int = knob(0, "of the tasks", low=0, high=2**31 - 2)
