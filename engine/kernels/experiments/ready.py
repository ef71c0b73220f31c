"""Whether the decoder step and sampling are compiled for this processor already, and compiling
them beforehand.

The first compilation takes seconds and is kept on disk. Who must answer at once asks `ready` and
runs plain torch until then, while another process compiles. An engine should keep to one path for
its life: the two agree within rounding, not bit for bit.
"""

import numpy as np

from engine.kernels import sample
from engine.kernels.claims import STRIDE
from engine.kernels.compiled import is_cached
from engine.kernels.decoder_step import Buffers, DecoderStep, Inputs, Shape, Weights, phases
from engine.kernels.decoder_step.products_cpu import FIELDS, NOTHING, product_of, product_ready
from engine.kernels.decoder_step.step_cpu import run

WEIGHTS = {"float32": np.float32, "bfloat16": np.uint32}
CACHE = {"float32": np.float32, "bfloat16": np.uint16}


def ready(weights: str = "float32", cache: str = "float32") -> bool:
    """Whether a step with weights and cache of these dtypes would run without compiling first."""
    step = is_cached(run, *_nothing(cache), 0) and product_ready(np.zeros(1, WEIGHTS[weights]))
    return step and sample.ready()


def prepare(weights: str = "float32", cache: str = "float32") -> None:
    """Compile the step for these dtypes, and sampling, or load what is compiled."""
    nothing = _nothing(cache)
    DecoderStep(*nothing)(*nothing)
    product_of(np.zeros(1, WEIGHTS[weights]))
    sample.prepare()


def _nothing(cache: str) -> tuple[Shape, Weights, Inputs, Buffers, np.ndarray]:
    """Arguments of the right types for a step of no layers and no tokens."""
    floats, longs, ints = (np.zeros(1, kind) for kind in (np.float32, np.int64, np.int32))
    one = np.float32(1)
    shape = Shape(0, 16, 1, 1, 16, 16, 16, 1, False, one, one, np.float32(0), 1, 0)
    matrices = np.zeros(FIELDS, np.int64)
    packed = Weights(matrices, NOTHING, floats, floats, floats, longs, floats[:0])
    none, like = ints[:0], np.zeros(0, CACHE[cache])
    views = 0, none, none, none, none, none, 1, none, 1, floats, longs, 0, floats, 0
    inputs = Inputs(
        none, none, ints, none, none, 1, longs, longs[:0], none, none, floats, longs, like, 0,
        *views,
    )  # fmt: skip
    buffers = Buffers(
        floats, floats, floats, floats, floats, floats, floats, floats, 1, ints, 0
    )  # fmt: skip
    return shape, packed, inputs, buffers, np.zeros(phases(0) * STRIDE, np.int64)
