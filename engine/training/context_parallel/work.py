"""What each process of a real run does: its piece of the attention, once cold and once recorded."""

from typing import Any

import numpy as np

from engine.core.config import from_dict
from engine.distributed.held import Held
from engine.distributed.rank import Rank
from engine.distributed.real import follow
from engine.training.context_parallel.config import SequenceConfig
from engine.training.context_parallel.problem import deal, program


def work(rank: Rank, given: dict[str, Any]) -> None:
    """What each process does. `given`: the config as plain values."""
    config = from_dict(SequenceConfig, given)
    piece = config.pieces()[rank.rank]
    own = deal(config, piece)
    rank.enter("warm-up")
    follow(rank, program(config, piece, own), Held())
    rank.transport.barrier()
    rank.record.events.clear()
    rank.transport.forget()
    rank.transport.open()
    rank.enter("attention")
    held = Held()
    held.note(own)
    found = follow(rank, program(config, piece, own), held)
    rank.record.put("peak", np.array(held.peak))
    for name, tensor in found.items():
        rank.record.put(name, tensor.numpy())
