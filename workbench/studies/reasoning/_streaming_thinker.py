"""Checks of StreamingThinker: logits against a forward from scratch, the mask, the order, and how
often each order of thinking is right."""

import numpy as np

from engine.core.config import update
from engine.core.difference import largest
from engine.core.intervals import wilson
from engine.core.log import Log
from engine.core.plot import Plot
from engine.models.loading.find import beside
from engine.reasoning.streaming_thinking.streaming_thinking import ReadingConfig
from engine.reasoning.streams.loop import open_streams
from engine.reasoning.streams.reference import changed, from_scratch
from engine.reasoning.streams.responses import waits
from engine.reasoning.streams.script import Script, reach, while_reading
from workbench.studies._read import Weights, weights_of
from workbench.study import Changes, Figure, Outcome, RunConfig, Sweep

CLOSE = 1e-4
# Each taught its own order alone, on the same ledgers for as long, from what learnt every order.
AT_ONCE, AFTER_ALL = "ledger-streaming-700k", "ledger-batch-700k"
APART = 64  # where thoughts begin in training and in every forward from scratch


def expected(config: ReadingConfig, log: Log, place: int, whole: bool) -> Script:
    """What a problem's tokens may see by the rule alone: each thought its clause, or everything."""
    read, think = (log.blobs[f"kept/{place}/{name}"].tolist() for name in ("read", "think"))
    ends = np.cumsum([len(clause) for clause in config.drawn()[place].clauses])
    _, words = open_streams(config)
    said = words.text(think)
    unit = np.array([said[1 : at + 1].count(";") for at in range(len(said))])
    upto = ends[np.minimum(unit, len(ends) - 1)]
    return while_reading(read, think, [len(read)] * len(think) if whole else upto.tolist(), APART)


def farthest(config: ReadingConfig, log: Log, weights: Weights, whole: bool) -> tuple[float, int]:
    """The largest distance of a thought's logits from a forward from scratch; rows compared."""
    worst, rows = 0.0, 0
    for place in range(config.problems):
        script = expected(config, log, place, whole)
        have_NV = log.blobs[f"kept/{place}/logits"]
        want_NV = from_scratch(*weights, script)[-len(have_NV) :]
        worst, rows = max(worst, largest(have_NV, want_NV)), rows + len(have_NV)
    return worst, rows


def same_as_scratch(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Two paces, several problems at once; the mask is built from the clauses alone."""
    weights, worst, rows = weights_of(open_streams(config)[0].model), 0.0, 0
    for between in (0.0, 3.0) if fast else (0.0, 0.5, 1.0, 3.0, 12.0):
        changes = {
            "keep_logits": True, "problems": 2 if fast else 6, "virtual": True,
            "pace": between * config.pass_s,
        }  # fmt: skip
        each = update(config, changes)
        distance, count = farthest(each, run_config(each), weights, False)
        worst, rows = max(worst, distance), rows + count
    return Outcome(
        f"every thought's logits within {CLOSE:g} of one forward with the streaming mask",
        f"at most {worst:.1e} over {rows:,} rows of logits",
        worst <= CLOSE,
        figure=Figure.exact(worst),
        needed=CLOSE,
    )


def mask(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Change letters of the input one by one, in the mask that a run at full pace applied."""
    config = update(config, {"keep_logits": True, "pace": 0.0, "problems": 1})
    log, weights = run_config(config), weights_of(open_streams(config)[0].model)
    kept = {name: log.blobs[f"kept/0/{name}"].tolist() for name in ("read", "think", "upto")}
    script = while_reading(kept["read"], kept["think"], kept["upto"], APART)
    may_NN = reach(expected(config, log, 0, False).visible_NN, weights[0].layers)
    places = range(0, len(kept["read"]), 3 if fast else 2)
    before_NV = from_scratch(*weights, script)
    leaked = missed = 0
    for place in places:
        other = next(token for token in kept["read"] if token != kept["read"][place])
        differs_N = changed(*weights, script, place, other, before_NV)
        leaked += int((differs_N & ~may_NN[:, place]).sum())
        missed += int((~differs_N & may_NN[:, place]).sum())
    return Outcome(
        "a letter of a clause changes every logit that may see it, and no bit of any other",
        f"{leaked} changed that must not, {missed} kept that may change; {len(places)} letters",
        leaked == 0 and missed == 0,
        figure=Figure.exact(leaked + missed, "logits"),
        needed=0.0,
    )


def order(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same problems, the input at once and slower than thoughts."""
    worst, same = 0.0, 0
    kept = {"keep_logits": True, "virtual": True, "problems": 4 if fast else 24}
    logs = [
        run_config(update(config, {**kept, "pace": between * config.pass_s}))
        for between in (0.0, 1.0, 6.0)
    ]
    for place in range(int(kept["problems"])):
        thought = [log.blobs[f"kept/{place}/think"].tolist() for log in logs]
        same += thought[0] == thought[1] == thought[2]
        for log in logs[1:]:
            pair = [one.blobs[f"kept/{place}/logits"] for one in (logs[0], log)]
            rows = min(map(len, pair))
            worst = max(worst, largest(pair[1][:rows], pair[0][:rows]))
    return Outcome(
        f"thoughts and logits (within {CLOSE:g}) are the same however fast the input comes",
        f"{same} of {kept['problems']} problems the same, logits at most {worst:.1e} apart",
        same == kept["problems"] and worst <= CLOSE,
        figure=Figure.exact(worst),
        needed=CLOSE,
    )


def whole(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """All of the input there, thoughts see all of it: beside one causal sequence."""
    changes = {
        "keep_logits": True, "pace": 0.0, "policy": "arrived", "problems": 2 if fast else 12,
    }  # fmt: skip
    config = update(config, changes)
    distance, rows = farthest(
        config, run_config(config), weights_of(open_streams(config)[0].model), True
    )
    return Outcome(
        f"logits within {CLOSE:g} of batch thinking, one causal sequence of input and thoughts",
        f"at most {distance:.1e} over {rows:,} rows of logits",
        distance <= CLOSE,
        figure=Figure.exact(distance),
        needed=CLOSE,
    )


def accuracy(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same problems both ways, each by the model that was taught it alone; the difference with
    its interval over problems."""
    count, together = (192, 192) if fast else (1000, 250)
    config = update(config, {"problems": together, "pace": 0.0, "virtual": True})
    after = beside(config.model, AFTER_ALL)
    rival: Changes = {"model": after, "policy": "batch", "shifting": False}
    found: dict[str, list[bool]] = {"ours": [], "batch": []}
    for first in range(0, count, together):
        each = update(config, {"model": beside(config.model, AT_ONCE), "first": 100 * first})
        for name, one in (("ours", each), ("batch", update(each, rival))):
            found[name] += [wait.right for wait in waits(run_config(one))]
    right = np.array(list(found.values()), float)
    apart = Figure.mean(right[0] - right[1], "%")
    shares = [f"{one.mean():.1%} {span(one)}" for one in right]
    return Outcome(
        "no less often right than batch thinking (95% interval)",
        f"streaming {shares[0]}, batch {shares[1]}, difference {apart.low:+.1%} to "
        f"{apart.high:+.1%}; n = {count}",
        apart.low >= 0,
        figure=apart,
        needed=0.0,
    )


def span(right: np.ndarray) -> str:
    """The 95% interval of a share."""
    low, high = wilson(float(right.sum()), len(right))
    return f"({low:.1%} to {high:.1%})"


def over_the_pace() -> tuple[Sweep, ...]:
    """Waits over the pace of the input, streaming beside batch, on a virtual clock."""
    x = "between two input tokens (passes)"
    panels = {
        Plot("Wait for the answer", x, "after the input is whole (passes)"): (
            lambda log: [wait.answer_passes for wait in waits(log)]
        ),
        Plot("Wait for the first thought", x, "input read before it (tokens)"): (
            lambda log: [wait.onset for wait in waits(log)]
        ),
    }
    lines = {f"{kind} thinking": {"policy": kind} for kind in ("streaming", "batch")}
    paces = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0)
    alone = {"virtual": True, "problems": 1}
    return tuple(
        Sweep(plot, (_pace, paces), measure, lines, alone) for plot, measure in panels.items()
    )


def _pace(config: ReadingConfig, passes: float) -> Changes:
    return {"pace": passes * config.pass_s}
