"""The driver of attention over a split sequence: ranks' work and transfers, held to one process.

Emits ranks' events, and levels for each result's error, each rank's most bytes, and communication
that no work hides.
"""

from engine.core.events import Level
from engine.core.run import Live
from engine.distributed.exposed_communication import exposed, sent, worked
from engine.distributed.merge import lane, link_lane
from engine.training.context_parallel.config import SequenceConfig
from engine.training.context_parallel.memory_fit import links
from engine.training.context_parallel.problem import gathered, truth

ERROR, EXPOSED, BYTES, PEAK = "error", "exposed communication", "bytes sent", "peak bytes"
MOST_PAIRS = 1 << 23  # scores that the truth may hold at once, in float64
FEW = 5  # ranks up to which links get lanes of their own


def run(config: SequenceConfig, live: Live) -> None:
    """Attention as `config` says. Raises BadInput, RankLost among them."""
    clock = config.executor.clock()
    live.open(config, clock, lanes=lanes(config))
    live.report("attention", 0, 0)
    done = config.executor.attend(config, live)
    for event in done.events:
        live.emit(event)
    now = live.log.duration
    for rank, peak in enumerate(done.peaks):
        live.emit(Level(now, lane(rank), PEAK, float(peak)))
    for name, of in ((EXPOSED, exposed(live.log)), ("computing", worked(live.log))):
        for where, seconds in of.items():
            live.emit(Level(now, where, name, seconds))
    for (source, target), size in sorted(sent(live.log).items()):
        live.emit(Level(now, f"{source} to {target}", BYTES, size))
    scores = config.batch * config.heads * config.tokens**2
    if done.arrays and scores <= MOST_PAIRS:
        found = gathered(config, done.arrays)
        for name, right in truth(config).items():
            live.error(now, name, found[name], right)
    clock.wait_until(now)


def lanes(config: SequenceConfig) -> list[str]:
    """Ranks, and under them the links in use where they are few."""
    found = [lane(rank) for rank in range(config.ranks)]
    if config.ranks <= FEW:
        found += [link_lane(source, target) for source, target in links(config)]
    return found
