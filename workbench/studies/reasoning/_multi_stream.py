"""Checks of Multi-Stream: logits against a forward from scratch, the mask, isolation; how often all
questions are answered rightly, beside a single stream."""

import numpy as np

from engine.core.config import update
from engine.core.difference import largest
from engine.core.plot import Plot
from engine.models.loading.find import beside
from engine.reasoning.multi_stream.config import StreamsConfig
from engine.reasoning.streams.loop import open_streams
from engine.reasoning.streams.reference import changed, from_scratch
from engine.reasoning.streams.responses import reactions, verdicts
from engine.reasoning.streams.script import Script, in_rows, reach, who_sees
from engine.tasks.running_sum import STREAMS
from workbench.studies._read import share, weights_of
from workbench.study import Changes, Figure, Outcome, RunConfig, Sweep

CLOSE = 1e-4
ALONE = "running-sum-turns-400k"  # taught a single stream's turns alone, for as long
TURNS = (1, 2, 4, 6)  # numbers read before they are thought of
OVER_TURNS = Sweep(
    Plot("Reaction to a question", "numbers read in a turn", "to the first token (passes)"),
    ("turn", (1, 2, 3, 4, 6)),
    lambda log: [one.passes for one in reactions(log)[0]],
    {form: {"form": form} for form in ("in turns", "side by side")},
    {"virtual": True, "problems": 1, "pace": 0.004, "pass_s": 0.004},
    tuple({"first": 1000 * first} for first in range(6)),
)


def scripts(
    config: StreamsConfig, run_config: RunConfig, count: int
) -> list[tuple[Script, np.ndarray]]:
    """What streams said in runs, under the mask of the paper's rule, and the logits they had."""
    config = update(
        config, {"keep_logits": True, "problems": count, "virtual": True, "form": "side by side"}
    )
    log, sees_SS = run_config(config), who_sees(config.sees, STREAMS)
    kept = [[log.blobs[f"kept/{p}/{name}"] for name in ("tokens", "logits")] for p in range(count)]
    return [(in_rows(tokens_RS, sees_SS), logits.reshape(-1, logits.shape[-1]))
            for tokens_RS, logits in kept]  # fmt: skip


def same_as_scratch(config: StreamsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The mask is built from rows and streams alone, for three ways to see."""
    weights, worst, rows = weights_of(open_streams(config)[0].model), 0.0, 0
    for sees in (config.sees, "think: read say; say: ask think", ""):
        each = update(config, {"sees": sees})
        for script, have_NV in scripts(each, run_config, 2 if fast else 8):
            want_NV = from_scratch(*weights, script)
            worst, rows = max(worst, largest(have_NV, want_NV)), rows + len(have_NV)
    return Outcome(
        f"every logit within {CLOSE:g} of one forward over all rows with the explicit mask",
        f"at most {worst:.1e} over {rows:,} rows of logits",
        worst <= CLOSE,
        figure=Figure.exact(worst),
        needed=CLOSE,
    )


def mask(config: StreamsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """One token at a time is changed in the engine's own run and logits compared bit by bit."""
    weights = weights_of(open_streams(config)[0].model)
    script, have_NV = scripts(config, run_config, 1)[0]
    may_NN = reach(script.visible_NN, weights[0].layers)
    leaked = missed = 0
    places = range(0, len(script.tokens_N), 11 if fast else 3)
    vocab, before_NV = weights[0].vocab, from_scratch(*weights, script)
    for place in places:
        token = int(script.tokens_N[place] + 1) % vocab
        differs_N = changed(*weights, script, place, token, before_NV)
        leaked += int((differs_N & ~may_NN[:, place]).sum())
        missed += int((~differs_N & may_NN[:, place]).sum())
    distance = largest(have_NV, before_NV)
    return Outcome(
        "a token changes every logit that its mask lets it reach, and no bit of any other; "
        "the engine applied that mask",
        f"{leaked} changed that must not, {missed} kept that may change, of {len(places)} tokens; "
        f"the engine's logits at most {distance:.1e} away",
        leaked == 0 and missed == 0 and distance <= CLOSE,
        figure=Figure.exact(leaked + missed, "logits"),
        needed=0.0,
    )


def isolated(config: StreamsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Change what is asked; what is read and thought must not notice, what is said must."""
    weights = weights_of(open_streams(config)[0].model)
    heard = noticed = letters = 0
    for script, _ in scripts(config, run_config, 2 if fast else 8):
        before_NV = from_scratch(*weights, script)
        ask, hidden = STREAMS.index("ask"), [STREAMS.index("read"), STREAMS.index("think")]
        for place in np.flatnonzero(script.stream_N == ask)[:: 6 if fast else 2].tolist():
            token = int(script.tokens_N[place] + 1) % weights[0].vocab
            differs_N = changed(*weights, script, place, token, before_NV)
            noticed += int(differs_N[np.isin(script.stream_N, hidden)].sum())
            heard += int(differs_N[script.stream_N == STREAMS.index("say")].sum())
            letters += 1
    return Outcome(
        "no bit of read or think depends on ask; say does",
        f"{noticed} logits of read and think changed, {heard} of say; {letters} letters of ask",
        noticed == 0 and heard > 0,
        figure=Figure.exact(noticed, "logits"),
        needed=0.0,
    )


def rival(config: StreamsConfig) -> Changes:
    """A single stream by the model that was taught nothing else."""
    return {"form": "in turns", "model": beside(config.model, ALONE)}


def accuracy(config: StreamsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Test problems all of whose questions are answered rightly, beside a single stream's, of a
    model that was taught nothing else, at the best length of turn."""
    config = update(config, {"virtual": True, "problems": 64 if fast else 500})
    ours_P = right(config, run_config)
    alone = update(config, rival(config))
    others = {turn: right(update(alone, {"turn": turn}), run_config) for turn in TURNS}
    best = max(others, key=lambda turn: float(others[turn].mean()))
    apart = Figure.mean(ours_P - others[best], "%")
    told = ", ".join(f"of {turn} {right_P.mean():.1%}" for turn, right_P in others.items())
    return Outcome(
        "every question right in no fewer problems than of a single stream, by the 95% interval's "
        f"low end, at the best for it of turns of {', '.join(map(str, TURNS))} numbers",
        f"side by side {share(ours_P)}, in turns {told}; difference to the best {apart.value:+.1%} "
        f"[{apart.low:+.1%}, {apart.high:+.1%}]; n = {config.problems} problems",
        apart.low >= 0,
        figure=apart,
        needed=0.0,
    )


def right(config: StreamsConfig, run_config: RunConfig) -> np.ndarray:
    """[P] 1.0 where every question of a problem is answered rightly."""
    return np.array([right == asked for right, asked in verdicts(run_config(config))], float)
