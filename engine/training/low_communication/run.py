"""Driver: replicas learn the shipped text by one method, told as events while they do."""

from dataclasses import replace

from engine.core.run import Live
from engine.distributed.merge import lane
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.described_curves import BESIDE, described_curves
from engine.training.low_communication.described_curves import PLOTS as DESCRIBED
from engine.training.low_communication.executors.in_process import Samples, trained
from engine.training.low_communication.methods.synchronous import Synchronous
from engine.training.low_communication.progress import PLOTS, Progress


def run(config: LowCommunicationConfig, live: Live) -> None:
    """Train as `config` says. Raises BadInput where knobs do not fit together."""
    clock = config.executor.clock()
    lanes = [lane(rank) for rank in range(config.replicas)]
    live.open(
        config,
        clock,
        plots=[*PLOTS, *DESCRIBED],
        question="Is the loss the same for a fraction of the bytes?",
        lanes=lanes,
    )
    described_curves(config.method, live)
    if config.beside and config.method != Synchronous():
        compare(config, live)
    progress = Progress(live, config.method.kind)
    config.executor.run(config.job(live.seed), live, progress)


def compare(config: LowCommunicationConfig, live: Live) -> None:
    """Train with synchronous AdamW before the clock starts, and leave nothing but its curves."""
    job = replace(config.job(live.seed), method=Synchronous())

    def watch(now: float, samples: Samples) -> None:
        live.poll(0.0)
        live.report(f"{BESIDE}, to compare with", len(samples[0]) * job.report, job.steps)

    samples = trained(job, lambda event: None, watch)
    Progress(live, BESIDE, levels=False).reached(samples, 0.0)
