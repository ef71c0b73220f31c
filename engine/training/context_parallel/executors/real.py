"""Ranks are processes of this machine that exchange tensors over gloo, one thread each."""

from typing import ClassVar, Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.core.memory import require
from engine.core.run import Live
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from engine.training.context_parallel.executor import AttentionExecutor, Done
from engine.training.context_parallel.memory_fit import peak
from engine.training.context_parallel.rank_main import work
from engine.training.context_parallel.split_attention import SplitAttention

MOST = 16  # processes of one run
MOST_TOKENS = 1 << 15


class Real(AttentionExecutor):
    """float32; forward and backward once unrecorded first, so that nothing is timed cold."""

    formerly: ClassVar = ("processes",)
    kind: Literal["real"] = knob("real", doc="real ranks on this machine, over gloo")
    limit: float = knob(60.0, "the run is ended after", low=1.0, high=3600.0, unit="s")
    port: int = knob(0, "where ranks meet on loopback; 0: any free port", low=0, high=65535)

    def attend(self, asked: SplitAttention, live: Live) -> Done:
        if asked.ranks > MOST or asked.tokens > MOST_TOKENS:
            raise BadInput(
                f"ranks {asked.ranks}, tokens {asked.tokens}: real ranks on one machine are for "
                f"{MOST} ranks and {MOST_TOKENS} tokens at most; take executor=modelled"
            )
        require(
            asked.ranks * peak(asked), f"real ranks ({asked.ranks})",
            "take fewer tokens or heads, or executor=modelled",
        )  # fmt: skip
        records = launch(
            work, asked.ranks, asked, limit=self.limit, port=self.port,
            poll=lambda: live.poll(0.0),
        )  # fmt: skip
        names = ("o", "dq", "dk", "dv") if asked.backward else ("o",)
        return Done(
            merged(records),
            [int(record.array("peak")) for record in records],
            [{name: record.array(name) for name in names} for record in records],
        )
