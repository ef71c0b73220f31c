"""Hogwild! Inference: workers think side by side and read each other's cache as it is written."""

from statistics import median

import numpy as np
import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.config import update
from engine.core.difference import largest
from engine.core.events import Branch, Page, Span, Token
from engine.core.log import Log
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.request import Request, Sampling
from engine.models.config import ModelConfig
from engine.models.gathered import Cast
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.mind import open_mind
from engine.reasoning.threads.reference import Seen, logits
from engine.reasoning.threads.run import NAMES, prompt_tokens, run
from engine.reasoning.threads.step_time import step_times
from workbench.studies.reasoning._hogwild import PLAIN, SHARED, beside, beside_cost, fewer_steps
from workbench.study import Claim, Outcome, RunConfig, Study

LAYOUTS = ("contiguous", "interleaved", "combined")
CLOSE = 1e-4


Weights = tuple[ModelConfig, dict[str, Tensor]]


def weights_of(config: ReasoningConfig) -> Weights:
    """The shape of the config's model and its weights by name, in float32."""
    model = open_mind(config).model
    return model.config, dict(Cast(model.weights, torch.float32))


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
    weights, worst, rows = weights_of(config), 0.0, 0
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
    said: dict[str, str] = {}
    for token in run_config(config).of(Token):
        said[token.thread] = said.get(token.thread, "") + token.text
    mind, plain = open_mind(config), InferenceConfig(pages=config.pages)
    assert mind.tokenizer is not None
    engine = Engine(
        plain,
        executor_for(plain, mind.model, mind.name, mind.eos),
        WallClock(),
        lambda event: None,
        mind.tokenizer,
    )
    requests = []
    for name in NAMES[:2]:
        header = config.header.replace("{worker}", name).replace("{step}", "1")
        tokens = prompt_tokens(config, mind) + mind.tokenizer.encode(header)
        wish = Sampling(max_tokens=config.budget)
        requests.append(Request(np.array(tokens, np.int32), wish))
        engine.add(requests[-1])
    engine.run()
    same = [said[name] == r.text for name, r in zip(NAMES[:2], requests, strict=True)]
    return Outcome(
        "both workers say, letter by letter, what two ordinary requests say",
        f"{sum(same)} of 2 equal over {config.budget} tokens each",
        all(same),
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
    distance, rows = farthest(weights_of(config), log)
    return Outcome(
        f"one fork copies at most one page, and logits stay within {CLOSE:g}",
        f"{forks} fork, {copied} pages copied, at most {distance:.1e} over {rows} rows",
        forks == 1 and copied <= 1 and distance <= CLOSE,
    )


def step_cost(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Whole loops on the same weights in turns of eight steps, at equal lengths of view."""
    ours, theirs = step_times(config, PLAIN, 5 if fast else 15)
    ratio = median(a / b for a, b in zip(ours, theirs, strict=True))
    return Outcome(
        f"at most 1.25 times a step of {PLAIN} plain requests",
        f"{ratio:.2f} times: {median(ours) * 1e3:.2f} ms against {median(theirs) * 1e3:.2f} ms",
        ratio <= 1.25,
    )


STUDY = Study(
    slug="hogwild",
    driver=run,
    config=ReasoningConfig(
        workers=4, budget=64, sampling=Sampling(temperature=0.6), attention_every=4
    ),
    views=("threads", "token_river", "page_map", "levels"),
    about=(
        "Several workers, one model, one cache. Each worker writes its own blocks, and every block "
        "is stored once, its keys rotated as if it began at position 0. A worker's view is a list "
        "of blocks with the position at which it sees each; instead of turning keys, its query is "
        "turned by minus the block's offset, attended to each block apart, and the parts are "
        "merged by log-sum-exp. New keys are stored before attention, so a worker reads what the "
        "others write in the same step. Contiguous puts the others' words before one's own, "
        "interleaved shows finished steps only, combined shows both."
    ),
    tries=(
        ("Eight workers, contiguous", {"workers": 8, "layout": "contiguous", "budget": 32}),
        ("Beside four ordinary requests", {"requests": 4, "budget": 48}),
        ("Fork, join, prune", {"workers": 3, "fork_at": 10, "join_at": 26, "prune_at": 34}),
    ),
    presets={
        "independent": {"layout": "independent"},
        "contiguous": {"layout": "contiguous"},
        "finished-steps": {"layout": "interleaved", "step_tokens": 16},
        "shared-queue": {
            "model": SHARED,
            "layout": "contiguous",
            "header": "{worker}",
            "step_end": "\n",
            "prompt": "6a8b7c5d1e9f:",
            "sampling.temperature": 0.0,
            "attention_every": 1,
        },
        "modelled": {"model": "llama-3.1-8b", "dtype": "bfloat16", "executor": "modelled"},
        "beside-requests": {"requests": 4, "budget": 48},
    },
    claims=(
        Claim(
            id="from-scratch",
            sentence="Every worker's logits equal a forward from scratch over its own view.",
            paper="turning queries is stated to equal turning keys; no figure is given",
            grade="exact",
            check=from_scratch,
            broken={"turn_queries": False},
        ),
        Claim(
            id="alone",
            sentence="Workers who see nothing of each other are ordinary requests.",
            paper="not stated; a sanity check of the mechanism",
            grade="exact",
            check=alone,
            broken={"turn_queries": False},
        ),
        Claim(
            id="stored-once",
            sentence="However many workers see a token, its keys and values are stored once.",
            paper="workers share one attention cache and read it without recomputation (abstract)",
            grade="exact",
            check=stored_once,
            broken={"layout": "independent"},
        ),
        Claim(
            id="fork",
            sentence="A fork shares all pages, copies one when it writes, and stays exact.",
            paper="no forks in the paper; ours, by copy on write",
            grade="exact",
            check=fork,
            broken={"turn_queries": False},
        ),
        Claim(
            id="fewer-steps",
            sentence="Workers who read each other divide a queue of work and need fewer steps.",
            paper="LIMO and LiveCodeBench solved within fewer forward passes (section 4, figures)",
            grade="measured",
            check=fewer_steps,
            broken={"layout": "independent"},
        ),
        Claim(
            id="beside-requests",
            sentence="Threads and ordinary requests share steps, and each says what it says alone.",
            paper="not in the paper, whose workers have a loop of their own",
            grade="exact",
            check=beside,
            broken={"shared_steps": False},
        ),
        Claim(
            id="beside-cost",
            sentence="Sharing steps with requests is cheaper than taking turns with them.",
            paper="not in the paper",
            grade="measured",
            timed=True,
            check=beside_cost,
            broken={"shared_steps": False},
        ),
        Claim(
            id="step-cost",
            sentence="A step of four workers costs little more than four plain requests.",
            paper="58.1 ms a forward for 4 workers, 49.7 ms for 1, at 1,024 tokens (Table 1)",
            grade="measured",
            timed=True,
            check=step_cost,
            broken={"workers": 8},
        ),
    ),
    limits=(
        "The paper's models find out by themselves how to divide work. The one of the claim about "
        "steps, 170 thousand parameters, learnt it from examples: a queue of entries, four workers "
        "at most, who begin a step apart so that no two choose at once. The model of the picture "
        "writes Python of the standard library and does not cooperate. The paper's prompts (who "
        "works on what, am I repeating others) are left out. Views need rotary positions whose "
        "angle grows with the position alone, and plain keys and values. A thread never yields its "
        "pages, since what it wrote depends on what it saw then and cannot be computed again: "
        "requests of its engine yield theirs, and where none is left the thread ends. The prompt "
        "is read in a step of its own. `workbench serve` answers requests alone: OpenAI's protocol "
        "has no word for threads that read each other. Threads that fork and join by requests do "
        "run on it, and on any such server: `workbench fork`."
    ),
)
