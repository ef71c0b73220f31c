"""1-bit Adam's claims: settings they are checked under and what each check runs."""

from engine.core.config import update
from engine.core.events import Span
from engine.core.log import Log
from engine.training.low_communication import metrics
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.methods.one_bit_adam import OneBitAdam
from workbench.studies.communication._low_communication import (
    SEEDS,
    SMALL,
    excess,
    interval,
    losses,
    run,
)
from workbench.study import Changes, Figure, Outcome, RunConfig

ADAM: Changes = {"method": "synchronous", "method.codec": "float16"}
# Gradients take some three times as long as a step: a network where volume is what matters.
SLOW: Changes = {
    "executor": "modelled",
    "executor.bandwidth": 6e5,
    "executor.latency": 0.002,
    "replicas": 3,
}
# The port on which Adam's gradients take 13 times as long as a replica computes, as in the paper's
# table 1: on 64 GPUs with 40 Gbit/s Ethernet 2275 ms beside 172.
ETHERNET = 1.2e5
SHORT: Changes = {"steps": 32, "learning.judged": 128}
PLAIN: Changes = {"method": "one_bit_adam", "method.compensate": False, "method.fault": "none"}


def same_loss(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Held-out loss after the same steps on the same windows, against Adam in half precision; what
    one bit comes to without compensation is told at full size."""
    return by_seeds(config, SEEDS, run_config, fast)


def by_seeds(
    config: LowCommunicationConfig, seeds: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with another number of seeds."""
    warm = warm_up(config, fast)
    ours = losses(config, run_config, warm, fast, int(seeds))
    figure = excess(ours, losses(config, run_config, ADAM, fast, int(seeds)))
    told = f"against Adam {interval(figure)}"
    if not fast:
        same = update(config, PLAIN) == config
        bare = ours if same else losses(config, run_config, {**warm, **PLAIN}, fast, int(seeds))
        told += f"; against no compensation {interval(excess(ours, bare))}"
    return Outcome(
        "held-out loss no higher than Adam's (95% interval)",
        told,
        figure.high <= 0,
        figure=figure,
        needed=0.0,
    )


def warm_up(config: LowCommunicationConfig, fast: bool) -> Changes:
    """As large a share of the small setting's steps as of the config's."""
    method = config.method
    if not fast or not isinstance(method, OneBitAdam):
        return {}
    return {"method.exact": max(1, round(method.exact / config.steps * SMALL["steps"]))}


def share_warm(config: LowCommunicationConfig) -> float:
    """The share of the config's steps that are warm-up; losses, bytes and speed are all of it."""
    return config.method.exact / config.steps if isinstance(config.method, OneBitAdam) else 0.0


def volume(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """All bytes of a run, warm-up included, against gradients in half precision at every step."""
    exact = max(1, round(share_warm(config) * 40))
    share = exact / 40
    turned: Changes = {"steps": 40, "learning.rows": 1, "learning.judged": 128}
    ours = {**turned, "method.exact": exact} if isinstance(config.method, OneBitAdam) else turned
    cut = metrics.sent(run(config, run_config, {**turned, **ADAM})) / metrics.sent(
        run(config, run_config, ours)
    )
    formula = 1 / (share + (1 - share) / 16)
    return Outcome(
        f"within 5% of 1 / (w + (1 - w) / 16) = {formula:.2f} for warm-up w = {share:.0%}",
        f"{cut:.2f} times less",
        abs(cut / formula - 1) <= 0.05,
        figure=Figure.exact(cut, "×"),
        needed=0.95 * formula,
    )


def pace(log: Log, exact: int) -> float:
    """Seconds a step of the first replica after the warm-up."""
    ends = [span.stop for span in log.of(Span) if span.name == "update" and span.lane == "rank 0"]
    return (ends[-1] - ends[exact]) / (len(ends) - 1 - exact)


def faster(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same training over a network as slow beside its steps as the paper's, warm-up and all."""
    return at_bandwidth(config, ETHERNET, run_config, fast)


def at_bandwidth(
    config: LowCommunicationConfig, bandwidth: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with another link."""
    share, exact = share_warm(config), 5  # after whose steps the pace is no longer the warm-up's
    plain = {**SHORT, **SLOW, "executor.bandwidth": bandwidth}
    brief = {"method.exact": exact} if isinstance(config.method, OneBitAdam) else {}
    mine = pace(run(config, run_config, {**plain, **brief}), exact)
    theirs = pace(run(config, run_config, {**plain, **ADAM}), exact)
    whole = theirs / (share * theirs + (1 - share) * mine)
    return Outcome(
        f"training with {share:.0%} of its steps in warm-up faster than Adam's",
        f"{mine * 1e3:.0f} ms a step after it against {theirs * 1e3:.0f} ms: "
        f"{theirs / mine:.1f} times, {whole:.1f} with warm-up",
        round(whole, 6) > 1.0,
        figure=Figure.exact(whole, "×"),
        needed=1.0,
    )
