"""Main function of each process of a real run: its piece of the attention, once cold and once
recorded."""

import numpy as np

from engine.distributed.memory_tracker import MemoryTracker
from engine.distributed.rank import Rank
from engine.distributed.real import follow
from engine.training.context_parallel.problem import deal, program
from engine.training.context_parallel.split_attention import SplitAttention


def work(rank: Rank, asked: SplitAttention) -> None:
    """One rank's part, from dealing the tensors to the arrays in its record."""
    piece = asked.pieces()[rank.rank]
    own = deal(asked, piece)
    rank.enter("warm-up")
    follow(rank, program(asked, piece, own), MemoryTracker())
    rank.transport.barrier()
    rank.record.events.clear()
    rank.transport.forget()
    rank.transport.open()
    rank.enter("attention")
    memory = MemoryTracker()
    memory.note(own)
    found = follow(rank, program(asked, piece, own), memory)
    rank.record.put("peak", np.array(memory.peak))
    for name, tensor in found.items():
        rank.record.put(name, tensor.numpy())
