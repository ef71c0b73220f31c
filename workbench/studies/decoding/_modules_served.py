"""Checks of how Duo-LLM's modules are served: parity with plain transformers, answers, flops."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from engine.core.config import update
from engine.core.events import Branch, Route, Span, Token
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.oracle.search import nats
from engine.inference.requests.request import Request, Sampling
from engine.models.config import ModelConfig
from engine.models.duo.routes import BIG, SMALL, alone
from engine.models.loading.find import find
from engine.models.model import Model
from engine.recipes.duo_series import RECIPE, shapes
from engine.training.losses.evaluate import greedy
from workbench.studies.decoding._duo_llm import MODEL, model, windows
from workbench.study import Changes, Figure, Outcome, RunConfig

BUSY: Changes = {"pages": 9, "max_running": 4, "step_tokens": 16}
NEAR = 1e-3  # nats, of float32 and its own order of sums
WISH = Sampling(max_tokens=12, ignore_eos=True)
Emitted = list[Any]


def served(config: InferenceConfig, built: Built) -> tuple[list[Request], Emitted]:
    """Six requests of a busy batch, each the beginning of a window, and what was told of them."""
    lengths = np.random.default_rng(config.seed).integers(6, 40, 6)
    texts = [ids_T[:n].numpy() for ids_T, n in zip(windows(6, 0), lengths, strict=True)]
    requests = [Request(ids_T.astype(np.int32), WISH) for ids_T in texts]
    told: Emitted = []
    engine = Engine(config, built.executor, built.clock, told.append)
    for request in requests:
        engine.add(request)
    engine.run()
    return requests, told


def by_config(config: InferenceConfig) -> tuple[list[Request], Emitted]:
    """Those of the config's own model."""
    return served(config, config.executor.build(config))


def plain_parity(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens, or bits of their log-probabilities, that differ from the plain transformer's."""
    config = update(config, {**BUSY, "model": MODEL, "dtype": "float16"})
    _, weights = model("duo", 0)
    wide, fault, differ, count = shapes(RECIPE)[1], config.modules.fault, 0, 0
    narrow = update(RECIPE, {"width": RECIPE.small}).llama(wide.vocab)
    for which, letter, shape in ((BIG, "B", wide), (SMALL, "s", narrow)):
        routes = {"modules": "routes", "modules.routes": letter * shape.layers}
        _, ours = by_config(update(config, {**routes, "modules.fault": fault}))
        plain = Model(shape, alone(weights, which), "float16")
        built = config.executor.build(config)
        _, theirs = served(config, Built(executor_for(config, plain, letter), built.clock))
        a, b = ([(t.thread, t.text, t.logprob) for t in x if isinstance(t, Token)]
                for x in (ours, theirs))  # fmt: skip
        differ, count = differ + sum(x != y for x, y in zip(a, b, strict=True)), count + len(a)
    return Outcome(
        "every token and every bit of its log-probability is the plain transformer's",
        f"{differ} of {count} differ",
        differ == 0,
        figure=Figure.exact(differ, "tokens that differ"),
        needed=0.0,
    )


def same_answers(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Requests of a busy batch with too few pages whose tokens, or their log-probabilities, are not
    those of whole passes. A token has two big ones: with one, nearly all take the same layer."""
    config = update(config, {**BUSY, "model": MODEL, "modules.big": 2})
    shape, weights = model("duo", 0)
    requests, told = by_config(config)
    right = update(config, {"modules.fault": "none"}).modules.of(shape)
    far, wrong = [], 0
    for r in requests:
        prompt, answer = r.prompt.tolist(), r.generated.tolist()
        said = [-t.logprob for t in told if isinstance(t, Token) and t.thread == r.id]
        judged = nats(right, weights, torch.tensor([prompt + answer]))[0, -WISH.max_tokens :]
        far.append(float((judged - torch.tensor(said)).abs().max()))
        wrong += answer != greedy(right, weights, prompt, WISH.max_tokens) or far[-1] > NEAR
    yielded = sum(isinstance(event, Branch) and event.state == "preempted" for event in told)
    return Outcome(
        f"every token that of whole passes without a cache, its log-probability within {NEAR:g}",
        f"{wrong} of {len(far)} differ, by {max(far):.1g}; pages were taken away {yielded} times",
        wrong == 0 and yielded > 0,
        figure=Figure.exact(wrong, "answers that differ"),
        needed=0.0,
    )


class Products(TorchFunctionMode):
    """Counts the flops of products with matrices of the given shapes, as they are done."""

    def __init__(self, shapes: set[tuple[int, ...]]) -> None:
        super().__init__()
        self.shapes, self.flops = shapes, 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is F.linear and tuple(args[1].shape) in self.shapes:
            self.flops += 2 * args[0].shape[0] * args[1].numel()
        return func(*args, **(kwargs or {}))


def matrices(shape: ModelConfig) -> set[tuple[int, ...]]:
    """Shapes of a feed-forward's and of a router's (and, alike in all runs, of others)."""
    assert shape.duo is not None
    hidden, widths = shape.hidden, (shape.width, shape.duo.small)
    found = {(2 * width, hidden) for width in widths} | {(hidden, width) for width in widths}
    return {*found, (shape.layers, hidden)}


def flops(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Flops told of steps less those of the products done, each beyond a step without modules."""
    config = update(config, {**BUSY, "model": MODEL, "dtype": "float16"})
    shape, fault, off = find(config.model).config, config.modules.fault, 0.0
    told, bare = dict[str, float](), (0.0, 0.0)  # bare: told and done, all left out
    mixed = "BsB- -ssB ssss ---- B---"
    for name, how in {
        "none": {"modules": "routes", "modules.routes": "-" * shape.layers},
        "mixed": {"modules": "routes", "modules.routes": mixed, "modules.fault": fault},
        "drawn": {"modules": "drawn", "modules.big": 2, "modules.fault": fault},
        "router": {"modules": "router", "modules.big": 2, "modules.fault": fault},
    }.items():
        with Products(matrices(shape)) as products:
            _, events = by_config(update(config, how))
        steps = sum(e.flops for e in events if isinstance(e, Span) and e.name == "step")
        tokens = sum(sum(e.counts) for e in events if isinstance(e, Route)) / shape.layers
        told[name], bare = steps / tokens, bare if told else (steps, products.flops)
        off = max(off, abs((steps - bare[0]) - (products.flops - bare[1])))
    return Outcome(
        "flops told equal those of the products done, whatever was left out",
        f"at most {off:,.0f} flops apart; {told['router']:,.0f} a token by the router, "
        f"{told['drawn']:,.0f} drawn, {told['mixed']:,.0f} with some left out",
        off < 0.5,
        figure=Figure.exact(round(off), "flops apart"),
        needed=0.0,
    )
