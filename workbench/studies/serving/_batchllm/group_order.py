"""BatchLLM's order of groups: those with more decoding for their prompt go first.

Judged on a recorded load, since jobs whose groups are all alike hide it.
"""

from collections.abc import Sequence
from dataclasses import replace

from engine.core.config import update
from engine.core.measure import serving
from engine.inference.config import InferenceConfig
from workbench.studies.serving._batchllm.jobs import JOBS, TRACED, over
from workbench.study import Break, Changes, Claim, Figure, Outcome, Regime, Reported, RunConfig

STEP = 2048  # tokens of a step, as in the other described jobs
AS_FOUND: Changes = {"ordering": "global_prefix", "ordering.decode_heavy_first": False}


def decode_first(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Conversations of the shipped trace, a part of it after another each as one job on an H200:
    tokens a second over those of the same groups in the order they are found in; or of the study's
    own job, on the same clock, where that is less."""
    found = over_step(config, STEP, run_config, fast)
    own = [
        update(config, {"executor": "modelled", "seed": config.seed + more}) for more in range(JOBS)
    ]
    told = ahead(own, run_config)
    beside = f"; of the study's own job {told.value:.2f}× [{told.low:.2f}, {told.high:.2f}]"
    found = replace(found, measured=found.measured + beside)
    if found.figure is not None and told.value < found.figure.value:
        return replace(found, figure=told, holds=found.holds and told.low > 1)
    return found


def over_step(config: InferenceConfig, step: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same where a step has room for so many tokens."""
    count = 40 if fast else 80
    room: Changes = {**TRACED, "workload.count": count, "step_tokens": int(step)}
    parts = [update(config, {**room, "workload.first": count * part}) for part in range(JOBS)]
    figure = ahead(parts, run_config)
    return Outcome(
        "more tokens a second than the same groups in the order they are found in (95% interval)",
        f"{figure.value:.3f}× [{figure.low:.3f}, {figure.high:.3f}], n = {figure.n}",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def ahead(jobs: Sequence[InferenceConfig], run_config: RunConfig) -> Figure:
    """Tokens a second of each job over those of its groups as they are found."""
    speeds = []
    for ours in jobs:
        theirs = update(ours, {**AS_FOUND, "ordering.fault": "none"})
        # A plan that does not turn its groups is its own rival.
        logs = {each: run_config(each) for each in (ours, theirs)}
        speeds.append([serving(logs[each]).tokens_per_second for each in (ours, theirs)])
    return over(*zip(*speeds, strict=True))


DECODE_FIRST = Claim(
    id="decode-first",
    sentence="Groups with more to decode go first: their decodes mix with later prompts.",
    paper="requests with a larger ratio of decoding are scheduled first, to mix decoding tokens "
    "with later prompts' chunks (abstract); no figure of it alone",
    grade="modelled",
    check=decode_first,
    reported=Reported(1.0, none=1.0, unit="×"),
    finding="undecided",
    fails=("small", "full"),
    why="a direction. Of five parts of the recorded conversations 1.007 [0.98, 1.03]; of this "
    "study's own job on the same clock, whose groups differ in what they decode, 1.06 [1.01, "
    "1.11]; on jobs whose requests are alike it can do nothing",
    broken=(
        Break({"ordering.fault": "light_first"}, True, "groups with the least to decode go first"),
        Break(AS_FOUND, why="the order they are found in"),
    ),
)
OVER_STEP = Regime(
    claim="decode-first",
    knob="tokens of a step",
    values=(512, 1024, STEP, 4096, 8192),
    coarse=(512, STEP, 8192),
    x="tokens that a step has room for",
    y="throughput over groups as they are found (×)",
    default=STEP,
    judged=over_step,
    log_x=True,
    noun="tokens",
)
