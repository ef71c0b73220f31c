"""The driver of attention runs: kernels item by item, worker by worker, then held to the truth.

Emits a span an item in its worker's lane; a span a kernel with flops and bytes; levels for the
memory taken, for how evenly work fell, and for how far results are from the float64 reference.
"""

import numpy as np
import torch

from engine.core.clock import Clock
from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Span
from engine.core.run import Live
from engine.core.tags import facts, tag
from engine.kernels.attention import reference
from engine.kernels.attention.config import AttentionConfig
from engine.kernels.attention.policy import Phase
from engine.kernels.attention.problem import Problem
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.attention.split import evenness
from engine.kernels.attention.sweep import SWEEP, sweep

KERNELS = "attention"  # the lane of whole kernels
MEMORY, BUSY, ERROR = "extra memory", "work split", "error"  # names of levels
MOST_BLOCKS = 2**20
MOST_PAIRS = 2**23  # pairs that the reference may hold at once, in float64


def run(config: AttentionConfig, live: Live) -> None:
    """Compute attention as `config` says; `live` is where events go."""
    _bounded(config)
    problem, workers = config.problem(), config.workers
    number, clock = workers.number(), config.workers.clock()
    live.open(
        config,
        clock,
        plots=[SWEEP],
        question="Do all workers have work, however few the heads?",
        **workers.facts(),
    )
    sweep(config, number, clock, live)
    phases = config.scores.phases(problem, config.split, number)
    for phase in phases:
        live.poll(clock.now())
        live.report(phase.name, 0, 0)
        seen = len(live.log)
        start = workers.work(phase, clock, live)
        now = clock.now()
        live.emit(_kernel(config, problem, phase, start, now))
        items = [e for e in live.log.since(seen) if isinstance(e, Span) and e.lane != KERNELS]
        live.emit(Level(now, phase.name, BUSY, evenness(shares(items), number)))
        if workers.real:
            live.emit(Level(now, KERNELS, MEMORY, float(problem.ledger.held)))
    if workers.real and config.checked:
        _compare(problem, clock, live)


def _bounded(config: AttentionConfig) -> None:
    """Raises BadInput for more work items than can be followed one by one."""
    heads = config.kv_heads * config.share
    count = heads * sum(-(-n // BLOCK) for n in config.lengths)
    if count > MOST_BLOCKS:
        raise BadInput(
            f"{count:,} blocks of {BLOCK} rows over all heads: at most {MOST_BLOCKS:,} are "
            "followed; take fewer tokens, heads or sequences"
        )


def shares(items: list[Span]) -> list[int]:
    """Query-key pairs that each worker did, of those that did any."""
    counted = dict.fromkeys((item.lane for item in items), 0)
    for item in items:
        counted[item.lane] += int(facts(item.tag)["pairs"])
    return list(counted.values())


def _kernel(
    config: AttentionConfig, problem: Problem, phase: Phase, start: float, now: float
) -> Span:
    device, dtype = config.workers.place
    part = getattr(torch, dtype).itemsize / 4  # phases count float32
    said = tag(
        phase="training" if phase.training else "prefill",
        dtype=dtype,
        shape=problem.name,
        variant=f"{config.scores.kind},{config.split.kind}",
        grade="" if config.workers.real else "modelled",
        device=device,
        L2=phase.tile_bytes * part,
        other_flops=phase.other_flops,
    )
    flops = float(phase.pair_flops * phase.pairs)
    return Span(now, KERNELS, phase.name, start, flops, phase.bytes * part, said)


def _compare(problem: Problem, clock: Clock, live: Live) -> None:
    """Largest error of each result, relative to the truth's largest number."""
    if problem.heads * sum(n * n for n in problem.lengths) > MOST_PAIRS:
        text = f"not held to the reference: more than {MOST_PAIRS:,} scores"
        live.emit(Mark(clock.now(), KERNELS, "not checked", text))
        return
    for name, truth in _truth(problem).items():
        live.error(clock.now(), name, problem.results[name].reshape(truth.shape), truth)


def _truth(problem: Problem) -> dict[str, np.ndarray]:
    """o, and the gradients where they were asked for, in float64."""
    *inputs, query_start, key_start = problem.tensors
    leaves = [x.double().requires_grad_(problem.backward) for x in inputs]
    q_THD, k_THD, v_THD = leaves
    o_THD, _ = reference.attention(
        q_THD, k_THD, v_THD, query_start, key_start,
        scale=problem.switches.scale, causal=problem.causal,
    )  # fmt: skip
    found = {"o": o_THD.detach().numpy()}
    if problem.backward:
        grads = torch.autograd.grad(o_THD, leaves, problem.do_THD.double())
        found |= {f"d{n}": g.numpy() for n, g in zip("qkv", grads, strict=True)}
    return found
