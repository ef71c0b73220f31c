"""StreamingThinker: think about what is read while the rest of it still comes in."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from engine.core.config import update
from engine.core.difference import largest
from engine.core.intervals import of_mean, wilson
from engine.core.log import Log
from engine.models.config import ModelConfig
from engine.models.gathered import Cast
from engine.reasoning.reading.config import ReadingConfig
from engine.reasoning.reading.readers import drawn, open_reader
from engine.reasoning.reading.run import run
from engine.reasoning.reading.waits import waits
from engine.reasoning.streams.reference import changed, from_scratch
from engine.reasoning.streams.script import Script, reach, while_reading
from workbench.study import Claim, Outcome, RunConfig, Study

CLOSE = 1e-4
APART = 64  # where thoughts begin in training and in every forward from scratch
MARGIN = 0.05  # of accuracy that streaming may cost before it is no longer beside batch

Weights = tuple[ModelConfig, Mapping[str, Tensor]]


def weights_of(config: ReadingConfig) -> Weights:
    """The shape of the config's model and its weights by name, in float32."""
    model = open_reader(config)[0].model
    return model.config, dict(Cast(model.weights, torch.float32))


def expected(config: ReadingConfig, log: Log, place: int, whole: bool) -> Script:
    """What a problem's tokens may see by the rule alone: each thought its clause, or everything."""
    read, think = (log.blobs[f"kept/{place}/{name}"].tolist() for name in ("read", "think"))
    ends = np.cumsum([len(clause) for clause in drawn(config)[place].clauses])
    _, words = open_reader(config)
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
    weights, worst, rows = weights_of(config), 0.0, 0
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
    )


def mask(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Change letters of the input one by one, in the mask that a run at full pace applied."""
    config = update(config, {"keep_logits": True, "pace": 0.0, "problems": 1})
    log, weights = run_config(config), weights_of(config)
    kept = {name: log.blobs[f"kept/0/{name}"].tolist() for name in ("read", "think", "upto")}
    script = while_reading(kept["read"], kept["think"], kept["upto"], APART)
    may_NN = reach(expected(config, log, 0, False).visible_NN, weights[0].layers)
    places = range(0, len(kept["read"]), 7 if fast else 2)
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
    )


def whole(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """All of the input there, thoughts see all of it: beside one causal sequence."""
    changes = {
        "keep_logits": True, "pace": 0.0, "policy": "arrived", "problems": 2 if fast else 12,
    }  # fmt: skip
    config = update(config, changes)
    distance, rows = farthest(config, run_config(config), weights_of(config), True)
    return Outcome(
        f"logits within {CLOSE:g} of batch thinking, one causal sequence of input and thoughts",
        f"at most {distance:.1e} over {rows:,} rows of logits",
        distance <= CLOSE,
    )


def token_waits(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Both ways on a virtual clock, a token of input every three passes."""
    changes = {"virtual": True, "pace": 3 * config.pass_s, "problems": 1}
    streaming, batch = [], []
    for first in range(4 if fast else 40):
        each = update(config, {**changes, "first": 1000 * first})
        streaming += waits(run_config(each))
        batch += waits(run_config(update(each, {"policy": "batch"})))
    onset = 1 - sum(w.onset for w in streaming) / sum(w.onset for w in batch)
    passes = 1 - sum(w.answer_passes for w in streaming) / sum(w.answer_passes for w in batch)
    return Outcome(
        "the first thought after 80% fewer tokens of input, the answer in 60% fewer passes",
        f"{onset:.0%} fewer tokens before the first thought, {passes:.0%} fewer passes from the "
        f"input's end to the answer, a token every 3 passes; n = {len(streaming)}",
        onset >= 0.8 and passes >= 0.6,
    )


def seconds(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The wall clock, streaming and batch in turns."""
    ours, theirs = [], []
    for first in range(5 if fast else 25):
        each = update(config, {"virtual": False, "problems": 1, "first": 1000 * first})
        ours += [max(w.answer_s, 0.0) for w in waits(run_config(each))]
        theirs += [w.answer_s for w in waits(run_config(update(each, {"policy": "batch"})))]
    cut = 1 - float(np.median(ours)) / float(np.median(theirs))
    return Outcome(
        "the answer comes at least 60% sooner after the input's last token",
        f"{cut:.0%} sooner: {np.median(ours) * 1e3:.0f} ms against {np.median(theirs) * 1e3:.0f} "
        f"ms (medians of {len(ours)})",
        cut >= 0.6,
    )


def accuracy(config: ReadingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same problems both ways; the difference with its interval over problems."""
    count, together = (192, 192) if fast else (1000, 250)
    config = update(config, {"problems": together, "pace": 0.0, "virtual": True})
    found: dict[str, list[bool]] = {"ours": [], "batch": []}
    for first in range(0, count, together):
        each = update(config, {"first": 100 * first})
        beside = update(each, {"policy": "batch", "shifting": False})
        for name, one in (("ours", each), ("batch", beside)):
            found[name] += [wait.right for wait in waits(run_config(one))]
    right = np.array(list(found.values()), float)
    low, high = of_mean((right[0] - right[1])[:, None])
    shares = [f"{one.mean():.1%} {span(one)}" for one in right]
    return Outcome(
        f"at most {MARGIN:.0%} below batch thinking, as far as the 95% interval goes",
        f"streaming {shares[0]}, batch {shares[1]}, difference {low[0]:+.1%} to {high[0]:+.1%}; "
        f"n = {count}",
        low[0] >= -MARGIN,
    )


def span(right: np.ndarray) -> str:
    """The 95% interval of a share."""
    low, high = wilson(float(right.sum()), len(right))
    return f"({low:.1%} to {high:.1%})"


STUDY = Study(
    slug="streaming-thinker",
    driver=run,
    config=ReadingConfig(first=1),
    views=("threads", "curves", "page_map", "levels"),
    about=(
        "The input and the thoughts about it are two streams, each with a cache of its own over "
        "the same pages. The input is written as it arrives and never sees a thought; a thought "
        "sees the input up to its clause and all earlier thoughts, so it can begin as soon as its "
        "clause is there, in the same forward passes that read on. Thoughts count positions from "
        "64 on, however much has arrived, so what arrives later shifts nothing: the thoughts are "
        "the same at any pace. The shipped model was trained here with these masks and positions "
        "to keep the balance of a ledger entry by entry and to answer the question at its end."
    ),
    tries=(
        ("Batch: read first, then think", {"policy": "batch"}),
        ("Four ledgers at once", {"problems": 4}),
        ("Waits over the pace", {"sweep": True, "virtual": True}),
    ),
    presets={"batch": {"policy": "batch"}, "arrived": {"policy": "arrived"}},
    claims=(
        Claim(
            id="from-scratch",
            sentence="Thinking over parallel caches equals one forward with the streaming mask.",
            paper="streaming mask in training, parallel caches in inference; no figure is given",
            grade="exact",
            check=same_as_scratch,
            broken={"shifting": True},
        ),
        Claim(
            id="mask",
            sentence="A letter of the input changes the thoughts that may see it and no other.",
            paper="reasoning follows the order of the input (abstract); no figure is given",
            grade="exact",
            check=mask,
            broken={"policy": "arrived"},
        ),
        Claim(
            id="order",
            sentence="Thoughts do not depend on when the input arrives.",
            paper="order-preserving reasoning by masks and position encoding (abstract)",
            grade="exact",
            check=order,
            broken={"shifting": True},
        ),
        Claim(
            id="whole",
            sentence="Where the input is whole, it is batch thinking.",
            paper="not stated; the catalogue's own condition",
            grade="exact",
            check=whole,
            broken={"shifting": True},
        ),
        Claim(
            id="waits",
            sentence="Thoughts begin after a little of the input, and the answer follows its end.",
            paper="80% fewer tokens waited before reasoning, over 60% less latency (abstract)",
            grade="modelled",
            check=token_waits,
            broken={"policy": "batch"},
        ),
        Claim(
            id="seconds",
            sentence="The answer comes sooner after the end of the input.",
            paper="over 60% less latency to the final answer (abstract)",
            grade="measured",
            timed=True,
            check=seconds,
            broken={"policy": "batch"},
        ),
        Claim(
            id="accuracy",
            sentence="Thinking while reading answers as well as thinking afterwards.",
            paper="performance comparable to batch thinking (abstract)",
            grade="measured",
            check=accuracy,
            broken={"shifting": True},
        ),
    ),
    limits=(
        "A model of 0.7 million parameters and one made-up task, whose thoughts need nothing but "
        "their clause and earlier thoughts; in text a thought may have to wait longer. Clauses end "
        "in a mark that the runtime knows; the paper's depths of thought after the reading and its "
        "training data made by larger models are left out. Read and thought tokens share one "
        "forward pass here, where the paper runs two. Waits hang on the pace of the input: the "
        "curves show where thoughts no longer keep up."
    ),
)
