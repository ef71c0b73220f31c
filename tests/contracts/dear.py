"""Claims whose breaks cost seconds of a processor: `pytest` tries them by turns of commits, `pytest
--full` each time."""

# Claims whose break takes seconds of a processor (`python -m tests.price` of a run before): of all
# of them one is tried without --full.
DEAR = (
    ("adaptive-parallel-reasoning", "equal-critical-path"),
    ("adaptive-parallel-reasoning", "equal-total"),
    ("adaptive-parallel-reasoning", "reinforced"),
    ("batchllm", "faster-described"),
    ("batchllm", "faster-on-trace"),
    ("damov", "held-out"),
    ("deepprune", "foresees"),
    ("deepprune", "saves"),
    ("duo-llm", "same-answers"),
    ("flash-attention-2", "linear-memory"),
    ("flover", "over-static"),
    ("fp8-vs-int8", "crosses"),
    ("fp8-vs-int8", "by-layer"),
    ("fp8-vs-int8", "no-worse"),
    ("fp8-vs-int8", "when-trained"),
    ("gated-linear-attention", "segments-agree"),
    ("large-language-monkeys", "power-law"),
    ("local-linear-attention", "of-the-named"),
    ("mscclpp", "faster"),
    ("multi-stream", "accuracy"),
    ("noloco", "converges"),
    ("one-bit-adam", "same-loss"),
    ("parallelbench", "never-below"),
    ("parathinker", "wider"),
    ("shiftaddllm", "bits-by-layer"),
    ("shiftaddllm", "both"),
    ("shiftaddllm", "lower-at-three"),
    ("shiftaddllm", "lower-at-two"),
    ("splitwise", "equal-cost"),
    ("streambp", "longest"),
    ("streaming-diloco", "same-loss"),
)

# Claims a point of whose maps takes more than ten: `pytest --full` draws it.
DEAR_MAPS = (
    ("deepprune", "accuracy"),
    ("deepprune", "over-fewer"),
)
