"""Checks of ThreadWeaver: tokens and seconds to wait for, prompts shared, training on the trie.

Of the trie: in come a model and requests, out come the losses and gradients both ways. By itself
each request is a plain causal forward at positions 0, 1, 2 …, without any mask of ours.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.config import update
from engine.core.events import Level
from engine.core.intervals import of_mean
from engine.core.measure import serving
from engine.models.config import ModelConfig
from engine.models.loading.find import find
from engine.models.reference import dense
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.fork_join.fork_join import ForkJoinConfig
from engine.reasoning.solving.scores import scores_of
from engine.tasks.part_sums import forked, serial
from engine.training.data.packing import Example, Unit, completed, packs, trie
from workbench.studies._read import share
from workbench.study import Changes, Figure, Outcome, RunConfig

WORSE = 0.03  # of accuracy, that forking may at most cost
FEWER = 1.3  # times the tokens on the critical path, at least
FIRST = 1 << 20  # the first problem that claims are judged on
FAST, FULL = 60, 2000
KNOWN = 0.5  # right at least, either way, that lengths of answers mean something
MAPPED = 1_300  # problems of a point: of one part there are no 2,000
COLUMNS = ("right", "tokens", "critical", "forks")
SERIAL: Changes = {"mode": "serial"}
HARD: Changes = {"task.entries": 5}  # it was taught two to four
TIMED: Changes = {"timed_as": "qwen3-8b"}
SMALLEST = 1e-3  # of the largest gradient: below it a weight's own is no measure


class Difference(NamedTuple):
    """Largest differences relative to what is compared, and the tokens each way computes."""

    loss: float
    gradient: float  # of any weight, over that tensor's largest gradient
    trie_tokens: int
    separate_tokens: int


def difference(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    units: Sequence[Unit],
    dtype: torch.dtype = torch.float64,
    siblings_apart: bool = True,
) -> Difference:
    """Loss and gradients of the trie against those of its units, all in `dtype`."""
    packed, alone = trie(units, siblings_apart), separate(units)

    def together(own: Mapping[str, Tensor]) -> Tensor:
        return _trie_loss(config, own, packed)

    def apart(own: Mapping[str, Tensor]) -> Tensor:
        nats = torch.stack([_nats(config, own, example) for example in alone]).sum()
        return nats / sum(len(example.at_L) for example in alone)

    loss, gradients = _gradients(weights, together, dtype)
    wanted, held = _gradients(weights, apart, dtype)
    largest = {name: float(gradient.abs().max()) for name, gradient in held.items()}
    least = SMALLEST * max(largest.values())
    worst = max(
        float((gradients[name] - held[name]).abs().max()) / max(largest[name], least)
        for name in held
    )
    sizes = len(packed), sum(len(example) for example in alone)
    return Difference(abs(loss - wanted) / abs(wanted), worst, *sizes)


def separate(units: Sequence[Unit]) -> list[Example]:
    """Each unit as an example of its own: what the trie has to equal."""
    return [completed(list(unit.context), list(unit.completion)) for unit in units]


def _trie_loss(config: ModelConfig, weights: Mapping[str, Tensor], example: Example) -> Tensor:
    (packed,) = packs([example], 1, len(example))
    logits_BSV = dense(config, weights, packed.tokens_BS, **packed.order)
    logits_LV = logits_BSV.flatten(0, 1)[packed.at_L]
    nats_L = F.cross_entropy(logits_LV, packed.target_L, reduction="none")
    weight_L = packed.weight_L.to(nats_L.dtype)
    return (nats_L * weight_L).sum() / weight_L.sum()


def _nats(config: ModelConfig, weights: Mapping[str, Tensor], example: Example) -> Tensor:
    """Summed nats of one request's own predictions."""
    logits_TV = dense(config, weights, torch.from_numpy(example.tokens_T)[None])[0]
    target_L = torch.from_numpy(example.target_L)
    return F.cross_entropy(logits_TV[torch.from_numpy(example.at_L)], target_L, reduction="sum")


def _gradients(
    weights: Mapping[str, Tensor],
    loss: Callable[[Mapping[str, Tensor]], Tensor],
    dtype: torch.dtype,
) -> tuple[float, dict[str, Tensor]]:
    own = {name: w.detach().to(dtype).requires_grad_() for name, w in weights.items()}
    value = loss(own)
    found = torch.autograd.grad(value, list(own.values()))
    return float(value.detach()), dict(zip(own, found, strict=True))


def with_parts(config: ForkJoinConfig, parts: float, run_config: RunConfig, fast: bool) -> Outcome:
    """`fewer_tokens` of problems with so many parts, where the model knows such problems: of a
    number it was not taught it works on another one, either way, and lengths tell nothing."""
    config = update(config, {"task.parts": int(parts)})
    size = {"problems": FAST if fast else MAPPED, "first": FIRST, "at_once": 64}
    rights = [float(way_P4[:, 0].mean()) for way_P4 in _ways(update(config, size), run_config)]
    if min(rights) >= KNOWN:
        return fewer_tokens(config, run_config, fast, MAPPED)
    return Outcome(
        f"right in {KNOWN:.0%} at least, either way",
        f"not learnt: right in {rights[0]:.0%} forked, {rights[1]:.0%} serially; as traces are "
        f"written {as_written(config):.2f}×",
        False,
        figure=Figure.exact(np.nan, "×"),
        needed=FEWER,
    )


def as_written(config: ForkJoinConfig) -> float:
    """Times the tokens to wait for, serial over forked, of traces without an error, in the mean."""
    folder = find(config.model).folder
    assert folder is not None
    reader, found = Tokenizer(folder), []
    for problem in config.task.problems("test", FAST):
        (whole,) = (len(reader.encode(said)) for _, said in serial(problem))
        first, *threads, last = (len(reader.encode(said)) for _, said in forked(problem))
        found.append((whole + 1) / (first + max(threads) + last + 1))  # each ends by a token
    return float(np.mean(found))


def fewer_tokens(
    config: ForkJoinConfig, run_config: RunConfig, fast: bool, full: int = FULL
) -> Outcome:
    """The same model and problems, serial and forked, problem by problem.

    At full size also with sums of more digits than it was taught, half of which it gets wrong.
    """
    size = {"problems": FAST if fast else full, "first": FIRST, "at_once": 64}
    ours_P4, theirs_P4 = _ways(update(config, size), run_config)
    told, is_kept = "", True
    if not fast:
        hard_P4, serial_P4 = _ways(update(config, {**size, **HARD}), run_config)
        (less,), (more_,) = of_mean(hard_P4[:, :1] - serial_P4[:, :1])
        is_kept = bool(less >= -WORSE)
        told = (
            f"; sums of five: forked {share(hard_P4[:, 0])}, serial {share(serial_P4[:, 0])}, "
            f"difference [{less:+.1%}, {more_:+.1%}]"
        )
    low, high = of_mean(ours_P4[:, :1] - theirs_P4[:, :1])
    times_P1 = theirs_P4[:, 2:3] / np.maximum(ours_P4[:, 2:3], 1)
    low_times, high_times = of_mean(times_P1)
    more = ours_P4[:, 1].mean() / theirs_P4[:, 1].mean() - 1
    return Outcome(
        f"forked at most {WORSE:.0%} less often right and {FEWER}× fewer tokens on the critical "
        "path (95% intervals)",
        f"forked {share(ours_P4[:, 0])}, serial {share(theirs_P4[:, 0])}, difference "
        f"[{low[0]:+.1%}, {high[0]:+.1%}]; {times_P1.mean():.2f}× [{low_times[0]:.2f}, "
        f"{high_times[0]:.2f}] fewer, {more:+.0%} tokens in all; n = {len(ours_P4)} problems{told}",
        bool(low[0] >= -WORSE and low_times[0] >= FEWER and is_kept),
        figure=Figure(
            float(times_P1.mean()), float(low_times[0]), float(high_times[0]), "×", len(times_P1)
        ),
        needed=FEWER,
    )


def _ways(config: ForkJoinConfig, run_config: RunConfig) -> tuple[np.ndarray, np.ndarray]:
    """scores_P4 (right, tokens, critical, forks) of the config's own way, and of going serially."""
    beside: Changes = {**SERIAL, "together": 0, "siblings_apart": True}
    ours, theirs = (scores_of(run_config(update(config, each))) for each in ({}, beside))
    ours_P4, theirs_P4 = (np.stack([one[name] for name in COLUMNS], 1) for one in (ours, theirs))
    return ours_P4, theirs_P4


def shared(config: ForkJoinConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Prompt tokens computed, from the log, against those sent and those that differ."""
    log = run_config(update(config, {"problems": 12 if fast else 100}))
    told = {level.name: int(level.value) for level in log.of(Level) if level.lane == "problems"}
    done = serving(log).prefilled
    most = told["different"] + told["requests"] * config.page_size
    return Outcome(
        f"of {told['prompt tokens']} prompt tokens sent at most {most} computed: those that differ "
        "and a page for each request",
        f"{done} computed ({done / told['prompt tokens']:.0%}); {told['different']} differ, in "
        f"{told['requests']} requests",
        done <= most,
        figure=Figure.exact((done - told["different"]) / told["requests"], "tokens"),
        needed=config.page_size,
    )


def sooner(config: ForkJoinConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The lengths really generated, timed request by request for a larger model on a device."""
    size = {"problems": 8 if fast else 60, "first": FIRST, **TIMED}
    ours_P = run_config(update(config, size)).blobs["modelled_seconds_P"]
    theirs_P = run_config(update(config, {**size, **SERIAL})).blobs["modelled_seconds_P"]
    times_P = theirs_P / ours_P
    low, high = of_mean(times_P[:, None])
    return Outcome(
        f"one problem at a time as Qwen3-8B on {config.device}: at least {FEWER}× sooner",
        f"{times_P.mean():.2f}× [{low[0]:.2f}, {high[0]:.2f}]: {ours_P.mean():.2f} s against "
        f"{theirs_P.mean():.2f} s (modelled); n = {len(times_P)} problems",
        bool(low[0] >= FEWER),
        figure=Figure(float(times_P.mean()), float(low[0]), float(high[0]), "×", len(times_P)),
        needed=FEWER,
    )
