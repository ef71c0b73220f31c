"""From logits to tokens, all rows of a batch at once."""

from engine.kernels.operator import Operator
from engine.kernels.sample import plain, work
from engine.kernels.sample.cases import CASES, SIZES
from engine.kernels.sample.reference import Wishes
from engine.kernels.sample.rows_cpu import greedy, prepare, ready, sample

OPERATOR = Operator(
    name="sample",
    about="the likeliest token, or a draw from softmax cut by top-k, top-p, min-p",
    reference=plain.draw,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
)

__all__ = ["OPERATOR", "Wishes", "greedy", "prepare", "ready", "sample"]
