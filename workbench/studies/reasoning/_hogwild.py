"""Checks of Hogwild: logits from scratch, workers beside requests, what steps cost."""

from dataclasses import replace
from statistics import median

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import update
from engine.core.difference import largest
from engine.core.events import AnyEvent, Branch, Page, Span
from engine.core.log import Log
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import Request, Sampling
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import open_model
from engine.reasoning.threads.reference import Seen, logits
from engine.reasoning.threads.run import NAMES, asked, prompt_tokens
from engine.reasoning.threads.step_time import shared_times, step_times
from workbench.studies._read import Weights, said_by, weights_of
from workbench.study import (
    Figure,
    Outcome,
    RunConfig,
)

LAYOUTS = ("contiguous", "interleaved", "combined")
CLOSE = 1e-4
DEARER = 58.1 / 49.7  # a step of four workers over one's, in the paper (Table 1)
PLAIN = 4  # requests that a step of four workers is held against
SHARING = 1.25  # times a step of as many plain requests, that sharing may cost


def farthest(weights: Weights, log: Log) -> tuple[float, int]:
    """The largest distance of any logit of a run from a forward from scratch; logit rows held."""
    kept = {name.removeprefix("kept/"): array for name, array in log.blobs.items()}
    seen = Seen(*(kept[name] for name in Seen._fields))
    want = logits(*weights, kept["tokens"].tolist(), seen)[kept["at"]]
    return largest(kept["logits"], want), len(kept["at"])


def from_scratch(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """All layouts, one to eight workers, steps short enough that blocks are closed on the way."""
    small = {
        "keep_logits": True, "budget": 6 if fast else 16, "step_tokens": 5,
        "prompt": "def mean(values):\n", "header": "\n# {worker}\n",
    }  # fmt: skip
    weights, worst, rows = weights_of(open_model(config).model), 0.0, 0
    some = {"contiguous": (1, 8), "interleaved": (3,), "combined": (5,)}
    for layout in LAYOUTS:
        for workers in some[layout] if fast else range(1, 9):
            each = update(config, {**small, "layout": layout, "workers": workers})
            distance, count = farthest(weights, run_config(each))
            worst, rows = max(worst, distance), rows + count
    return Outcome(
        f"every logit within {CLOSE:g} of a forward from scratch, three layouts, 1 to 8 workers",
        f"at most {worst:.1e} over {rows:,} rows of logits",
        worst <= CLOSE,
        figure=Figure.exact(worst),
        needed=CLOSE,
    )


def fork(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Two workers, one of which forks in the middle of a page."""
    config = update(
        config,
        {
            "layout": "contiguous", "workers": 2, "budget": 12, "fork_at": 6, "join_at": 10,
            "keep_logits": True,
        },
    )  # fmt: skip
    log = run_config(config)
    copied = sum(page.state == "copy" for page in log.of(Page))
    forks = sum(bool(b.parent) and b.state == "running" for b in log.of(Branch))
    distance, rows = farthest(weights_of(open_model(config).model), log)
    return Outcome(
        f"one fork copies one page, and logits stay within {CLOSE:g}",
        f"{forks} fork, {copied} pages copied, at most {distance:.1e} over {rows} rows",
        forks == copied == 1 and distance <= CLOSE,
        figure=Figure.exact(distance),
        needed=CLOSE,
    )


def beside(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Four workers who hear each other and three requests in one run, and each without the other.

    Requests alone are those of an engine that knows nothing of threads.
    """
    fixed = {"workers": 4, "budget": 20 if fast else 96, "sampling.temperature": 0.0, "fork_at": 5,
             "join_at": 12, "requests": 3}  # fmt: skip
    config = update(config, fixed)
    log = run_config(config)
    both, threads = said_by(log), said_by(run_config(update(config, {"requests": 0})))
    loaded = open_model(config)
    events: list[AnyEvent] = []
    engine = Engine(
        config.serving(), loaded.executor, loaded.clock, events.append, loaded.tokenizer
    )
    for request in asked(config, loaded):
        engine.add(request)
    engine.run()
    want = {**threads, **said_by(events)}
    tags = [span.tag for span in log.of(Span) if span.name == "step"]
    shared = sum(  # the engine's own steps, in which requests had a part
        tag.startswith("decode=") and "threads=" in tag and "decode=0 prefill=0" not in tag
        for tag in tags
    )
    same = sum(both.get(name) == text for name, text in want.items())
    return Outcome(
        "threads and requests share steps, and each says, letter by letter, what it says alone",
        f"{same} of {len(want)} equal, {len(threads)} of them threads; {shared} shared steps",
        same == len(want) == len(both) and shared > 0,
        figure=Figure.exact(len(want) - same, "texts"),
        needed=0.0,
    )


def step_cost(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Whole loops on the same weights in turns of eight steps, at equal lengths of view."""
    found = with_workers(config, config.workers, run_config, fast)
    assert found.figure is not None
    return replace(
        found,
        expected=f"at most {DEARER:.2f} times a step of one worker (95% interval)",
        holds=found.figure.high <= DEARER,
        needed=DEARER,
    )


def with_workers(
    config: ReasoningConfig, workers: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """So many workers beside one plain request."""
    config = update(config, {"workers": int(workers)})
    ours, theirs = step_times(config, 1, 5 if fast else 15)
    one = Figure.ratio(ours, theirs)
    return Outcome(
        f"less than {workers:g} steps of one worker (95% interval)",
        f"{one.value:.2f} times one: {median(ours) * 1e3:.2f} ms against "
        f"{median(theirs) * 1e3:.2f} ms",
        one.high < workers,
        figure=one,
        needed=workers,
    )


def sharing_cost(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same beside as many plain requests in a batch, who share nothing but the step."""
    return beside_plain(config, PLAIN, run_config, fast)


def beside_plain(
    config: ReasoningConfig, workers: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """So many workers beside as many plain requests."""
    config = update(config, {"workers": int(workers)})
    ours, theirs = step_times(config, int(workers), 5 if fast else 15)
    ratio = Figure.ratio(ours, theirs)
    return Outcome(
        f"at most {SHARING} times a step of {workers:g} plain requests in a batch (95% interval)",
        f"{ratio.value:.2f} times: {median(ours) * 1e3:.2f} ms against "
        f"{median(theirs) * 1e3:.2f} ms",
        ratio.high <= SHARING,
        figure=ratio,
        needed=SHARING,
    )


def beside_cost(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Steps of both beside a step of each after the other, in turns on the same weights."""
    return beside_requests(config, PLAIN, run_config, fast)


def beside_requests(
    config: ReasoningConfig, requests: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same of four workers and so many requests."""
    config = update(config, {"workers": PLAIN})
    ours, theirs = shared_times(config, int(requests), 3 if fast else 15)
    ratio = Figure.ratio(ours, theirs)
    return Outcome(
        f"{PLAIN} workers and {requests:g} requests in one step take less than 0.95 of the time "
        "they take one after the other (95% interval)",
        f"{ratio.value:.2f} of it: {median(ours) * 1e3:.2f} ms against "
        f"{median(theirs) * 1e3:.2f} ms",
        ratio.high < 0.95,
        figure=ratio,
        needed=0.95,
    )


def alone(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Two workers who see nothing of each other, beside the ordinary engine's two requests."""
    config = update(
        config,
        {
            "layout": "independent", "workers": 2, "budget": 24 if fast else 96, "fork_at": 0,
            "sampling.temperature": 0.0,
        },
    )  # fmt: skip
    said = said_by(run_config(config))
    loaded, plain = open_model(config), InferenceConfig(pages=config.pages)
    assert loaded.tokenizer is not None
    engine = Engine(
        plain,
        executor_for(plain, loaded.model, loaded.name, loaded.eos),
        WallClock(),
        lambda event: None,
        loaded.tokenizer,
    )
    requests = []
    for name in NAMES[:2]:
        header = config.header.replace("{worker}", name).replace("{step}", "1")
        tokens = prompt_tokens(config, loaded) + loaded.tokenizer.encode(header)
        wish = Sampling(max_tokens=config.budget)
        requests.append(Request(np.array(tokens, np.int32), wish))
        engine.add(requests[-1])
    engine.run()
    same = [said[name] == r.text for name, r in zip(NAMES[:2], requests, strict=True)]
    return Outcome(
        "both workers say, letter by letter, what two ordinary requests say",
        f"{sum(same)} of 2 equal over {config.budget} tokens each",
        all(same),
        figure=Figure.exact(2 - sum(same), "texts"),
        needed=0.0,
    )


def holders(log: Log) -> tuple[dict[int, set[str]], int]:
    """Who holds each page after the last step in which everybody still ran, and pages copied."""
    ended = [b.time for b in log.of(Branch) if b.state not in ("queued", "running")]
    steps = [s.time for s in log.of(Span) if s.name == "step" and s.time < min(ended)]
    held: dict[int, set[str]] = {}
    copied = 0
    for event in log.of(Page):
        if event.time > max(steps):
            break
        copied += event.state == "copy"
        if event.state in ("take", "share", "copy"):
            held.setdefault(event.page, set()).add(event.owner)
        elif event.state == "drop":
            held[event.page].discard(event.owner)
    return {page: owners - {"prompt"} for page, owners in held.items() if owners}, copied


def stored_once(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Counted from the page events of one run."""
    held, copied = holders(run_config(config))
    pages, views = len(held), sum(map(len, held.values()))
    return Outcome(
        f"every page held by all {config.workers} workers, none copied",
        f"{pages} pages stored stand for {views} in {config.workers} views; {copied} copied",
        views == pages * config.workers and copied == 0,
        figure=Figure.exact(pages * config.workers - views + copied, "pages"),
        needed=0.0,
    )
