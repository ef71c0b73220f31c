"""Config of context parallelism: attention over a split sequence, and its executor."""

from typing import ClassVar

from engine.core.config import Choice, knob
from engine.training.context_parallel.executor import AttentionExecutor
from engine.training.context_parallel.executors.real import Real
from engine.training.context_parallel.split_attention import SplitAttention


class SequenceConfig(SplitAttention):
    """One attention over `batch` sequences, split among `ranks`, and who computes it."""

    gone = ("sweep",)
    aliases: ClassVar = {"place": "executor"}
    executor: Choice[AttentionExecutor] = knob(make=Real, doc="where the ranks are")
