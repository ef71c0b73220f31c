"""CloudMatrix-Infer's claims: what each check runs."""

import numpy as np

from engine.core.config import update
from engine.fleet.config import FleetConfig
from engine.inference.config import InferenceConfig
from workbench.studies.serving._supernode.dispatch_ranks import Asked, here, on_ranks
from workbench.studies.serving._supernode.phase_rates import (
    PROMPT,
    REPORTED,
    best_rate,
    decode_rate,
    decoding,
    executor_of,
    prefill_rate,
    prefilling,
)
from workbench.study import Figure, Outcome, RunConfig

PREFILLS, DECODES, STRICT = 6688.0, 1943.0, 538.0  # tokens/s and NPU, as reported
# What the goal of this project asks of a model beside measured times to first tokens, and to each.
FIRST, EACH = 0.15, 0.10
WIDTHS, NARROW = (32, 64, 96, 160, 320), 64  # devices that share experts; at most of a rival
PROMPT_LENGTHS = (4096, 2048, 1024)  # of the paper's table
RIVALS = {"one batch": "none", "two in turn": "in_turn"}  # of two microbatches that overlap


def same_tokens(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Answers of a small mixture of experts on real ranks beside one process's."""
    asked = Asked(
        ranks=2 if fast else 4, sequences=3, answer=6 if fast else 24,
        swapped=executor_of(config).fault == "swapped", seed=config.engine.seed,
    )  # fmt: skip
    one, (many, sent) = here(asked), on_ranks(asked)
    right = int((one == many).sum())
    return Outcome(
        "every token as one process says it, whole and in 8 bits",
        f"{right} of {one.size} tokens on {asked.ranks} gloo ranks, each of which sent its experts "
        f"{sent[0]:,.0f} bytes whole and {sent[1]:,.0f} in 8 bits",
        right == one.size,
        figure=Figure.exact(right / one.size, "%"),
        needed=1.0,
    )


def prefills(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Prompts of 4,096 tokens, 16,384 an NPU and step, with experts in perfect balance."""
    found = prefill_rate(prefilling(config))
    return within("prompt tokens a second and NPU", found, PREFILLS, FIRST, "")


def within(what: str, found: float, reported: float, most: float, more: str) -> Outcome:
    """How far a modelled rate is from a measured one."""
    error = found / reported - 1
    return Outcome(
        f"{what} within {most:.0%} of the measured {reported:,.0f}",
        f"{found:,.0f} modelled: {error:+.0%}{more}",
        abs(error) <= most,
        figure=Figure.exact(found, "tokens/s"),
        needed=reported * (1 - most if error < 0 else 1 + most),
    )


def decodes(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """The paper's table of batches, by the error of each; the first is the one that counts."""
    rows = [(row, *decode_rate(decoding(config, *row[:3]))) for row in REPORTED[: 1 if fast else 5]]
    told = "; ".join(
        f"{row[0]:,} and {row[1]:,} tokens, {row[2]} at once: {rate:,.0f} of {row[4]:,.0f} "
        f"({rate / row[4] - 1:+.0%}), {each * 1e3:.1f} ms of {row[3]} a token"
        for row, rate, each in rows
    )
    what = "answers' tokens a second and NPU"
    return within(what, rows[0][1], DECODES, EACH, f" ({told})")


def strict(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Eight requests an NPU, which keep 15 ms a token there."""
    rate, each = decode_rate(decoding(config, *REPORTED[2][:3]))
    more = f"; {each * 1e3:.1f} ms a token, measured {REPORTED[2][3]}"
    return within("answers' tokens a second and NPU", rate, STRICT, EACH, more)


def rivals(config: InferenceConfig) -> dict[str, InferenceConfig]:
    """The same devices without overlap."""
    return {name: update(config, {"executor.overlap": how}) for name, how in RIVALS.items()}


def by_name(rates: dict[str, float]) -> str:
    """Tokens a second and NPU by name."""
    return ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())


def microbatched(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Answers' rate with two microbatches over that of the better rival, at three batches."""
    gains, told = dict[int, float](), list[str]()
    for batch in (96,) if fast else (64, 96, 128):
        one = decoding(config, PROMPT, 64, batch)
        rates = {name: decode_rate(each)[0] for name, each in rivals(one).items()}
        gains[batch] = decode_rate(one)[0] / max(rates.values())
        told.append(f"{gains[batch]:.3f}× at {batch} of an NPU ({by_name(rates)})")
    least = Figure.exact(round(min(gains.values()), 9), "×")  # a step beside itself: no gain
    return Outcome("more than one batch without overlap", "; ".join(told), least.value > 1,
                   figure=least, needed=1.0)  # fmt: skip


def prompts_microbatched(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """The same of prompts, where messages run beside all cores."""
    one = prefilling(config)
    ours = prefill_rate(one)
    rates = {name: prefill_rate(each) for name, each in rivals(one).items()}
    gain = Figure.exact(ours / max(rates.values()), "×")
    return Outcome(
        "more than one batch without overlap",
        f"{ours:,.0f} prompt tokens a second and NPU, {by_name(rates)}: {gain.value:.2f}×",
        gain.value > 1, figure=gain, needed=1.0,
    )  # fmt: skip


def wide(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Experts of one device each beside instances of fewer devices with as many in all, under the
    config's objective, at the paper's length of prompts where that is worth least; told of
    narrower objectives, too."""
    widest = getattr(config.pools, "decode_dies", 320)
    told, ratios = [], []
    asked = [(length, config.objective.tpot) for length in PROMPT_LENGTHS[: 1 if fast else None]]
    for length, most in (*asked, (PROMPT, 0.03), (PROMPT, 0.015)):
        rates = {dies: best_rate(config, dies, most, length) for dies in {*WIDTHS, widest}}
        listed = ", ".join(
            f"{dies} dies: {rate:,.0f}" + (f" (batch {batch})" if batch else "")
            for dies, (rate, batch) in sorted(rates.items())
        )
        told.append(
            f"prompts of {length:,}, within {most * 1e3:.0f} ms, by how many share experts {listed}"
        )
        theirs = max(rate for dies, (rate, _) in rates.items() if dies <= NARROW)
        ratios.append(rates[widest][0] / theirs if theirs else np.inf)
    gain = Figure.exact(min(ratios[: len(asked)]), "×")
    return Outcome(
        f"more tokens a second and NPU within {config.objective.tpot * 1e3:.0f} ms than the best "
        f"of at most {NARROW} devices",
        "; ".join(told) + ": " + ", ".join(f"{ratio:.2f}×" for ratio in ratios),
        gain.value > 1, figure=gain, needed=1.0,
    )  # fmt: skip
