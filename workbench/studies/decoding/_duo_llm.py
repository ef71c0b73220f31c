"""Checks of Duo-LLM's claims: losses by way of choosing at equal compute, parity, flops."""

from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from engine.core.config import update
from engine.core.events import Branch, Route, Span, Token
from engine.core.paths import dataset
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.oracle.search import nats, picking, search, ways
from engine.inference.requests.request import Request, Sampling
from engine.models.config import ModelConfig
from engine.models.duo.routes import BIG, SMALL, alone
from engine.models.loading.find import find
from engine.models.model import Model
from engine.models.text.tokenizer import Tokenizer
from engine.recipes.duo_series import RECIPE, shapes
from engine.recipes.folder import saved_weights
from engine.training.losses.evaluate import greedy
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS, LAYERS = RECIPE.seeds, RECIPE.layers
MODEL = f"{RECIPE.name}/duo-0"
DRAWS = 4  # of random routes
LENGTH = 48  # tokens of a window that is judged
FEW = 6  # windows of a small check; a router's are cheap
BUSY: Changes = {"pages": 9, "max_running": 4, "step_tokens": 16}
NEAR = 1e-3  # nats, of float32 and its own order of sums
WISH = Sampling(max_tokens=12, ignore_eos=True)
Weights = dict[str, Tensor]
Emitted = list[Any]


@cache
def model(kind: str, seed: int) -> tuple[ModelConfig, Weights]:
    """A shipped model of the series, in float32."""
    folder = find(f"{RECIPE.name}/{kind}-{seed}").folder
    assert folder is not None
    return saved_weights(folder)


@cache
def windows(count: int, part: int) -> Tensor:
    """Windows of text that no model has learnt from, int64 [count, LENGTH + 1], evenly apart;
    parts 0 and 1 have none in common."""
    folder = find(MODEL).folder
    assert folder is not None
    text = dataset("models/stdlib-5m/validation.txt").read_text("utf-8")
    starts = np.linspace(0, len(text) - LENGTH - 1, 2 * count).astype(int)[part::2]
    reader = Tokenizer(folder)
    cut = [reader.encode(text[at : at + LENGTH + 1])[: LENGTH + 1] for at in starts]
    return torch.tensor(cut)


@cache
def loss(way: str, big: int, seed: int, count: int, fault: str = "none") -> float:
    """Nats a token over the judged windows, with `big` big feed-forwards a token.

    `way`: oracle, router, drawn (the mean of some draws), fixed (the layers that are best for
    windows beside these), or plain (a model of the big ones alone, trained by itself).
    """
    config, weights = model("plain" if way == "plain" else "duo", seed)
    ids_BT = windows(count, 0)
    if way in ("plain", "router"):
        if way == "router":
            by_router = {"modules": "router", "modules.big": big, "modules.fault": fault}
            config = update(InferenceConfig(), by_router).modules.of(config)
        return float(nats(config, weights, ids_BT).mean())
    those = ways(config.layers, big)
    if way == "oracle":
        lost, routes_BTL = search(config, weights, ids_BT, those, picking(fault))
        assert bool(((routes_BTL == BIG).sum(-1) == big).all())
        return float(lost.mean())
    shape = (*ids_BT[:, 1:].shape, config.layers)
    if way == "drawn":
        chance = torch.Generator().manual_seed(seed)
        lost = []
        for _ in range(DRAWS):
            at = torch.randint(len(those.routes_WL), shape[:2], generator=chance)
            lost.append(float(nats(config, weights, ids_BT, those.routes_WL[at]).mean()))
        return float(np.mean(lost))
    other = windows(count, 1)
    tried = [nats(config, weights, other, route.expand(shape)).mean() for route in those.routes_WL]
    chosen = those.routes_WL[int(torch.stack(tried).argmin())]
    return float(nats(config, weights, ids_BT, chosen.expand(shape)).mean())


def losses(way: str, big: int, fast: bool, fault: str = "none", few: int = FEW) -> list[float]:
    """Of every model; in small over a few windows."""
    return [loss(way, big, seed, few if fast else 64, fault) for seed in range(SEEDS)]


def big_of(config: InferenceConfig) -> int:
    """How many big ones a token takes by the config."""
    return getattr(config.modules, "big", 1)


def below(ours: list[float], theirs: list[float], expected: str) -> Outcome:
    """By how many nats a token the first are below the second, of each model a pair."""
    figure = Figure.mean([b - a for a, b in zip(ours, theirs, strict=True)], "nats")
    return Outcome(
        expected,
        f"{np.mean(ours):.3f} against {np.mean(theirs):.3f} nats a token: {figure.value:+.3f} "
        f"({figure.low:+.3f} to {figure.high:+.3f}, {figure.n} models)",
        figure.low > 0.0,
        figure=figure,
        needed=0.0,
    )


def oracle_over_router(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The oracle against the router, each with as many big ones a token."""
    return at_budget(config, big_of(config), run_config, fast)


def at_budget(config: InferenceConfig, big: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same with so many."""
    ours = losses("oracle", int(big), fast, config.modules.fault)
    return below(ours, losses("router", int(big), fast), "less loss than the router's routes")


def one_big(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """One big one a token, where the oracle says, against big ones everywhere: one way alone."""
    ours, theirs = losses("oracle", 1, fast, config.modules.fault), losses("oracle", LAYERS, fast)
    return below(ours, theirs, "less loss than with the big one in every layer")


def one_big_over_plain(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same against a model of big ones alone, trained as long by itself."""
    ours = losses("oracle", 1, fast, config.modules.fault)
    return below(ours, losses("plain", 0, fast), "less loss than a model of big ones alone")


def one_beside_many(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """One big one a token against one small one: an oracle has as many ways of either."""
    ours = losses("oracle", 1, fast, config.modules.fault)
    theirs = losses("oracle", LAYERS - 1, fast)
    return below(ours, theirs, "less loss than with the big one in all layers but one")


def oracle_over_fixed(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The oracle against the layers that are best for all tokens."""
    ours = losses("oracle", big_of(config), fast, config.modules.fault)
    theirs = losses("fixed", big_of(config), fast)
    return below(ours, theirs, "less loss than the best layers for all tokens")


def router_over_fixed(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The router against the layers that are best for all tokens."""
    return router_at(config, big_of(config), run_config, fast)


def router_at(config: InferenceConfig, big: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same with so many big ones."""
    ours = losses("router", int(big), fast, config.modules.fault, 4 * FEW)
    theirs = losses("fixed", int(big), fast, few=4 * FEW)
    return below(ours, theirs, "less loss than the best layers for all tokens")


def nearer_chance(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """How far the router comes on the way from routes drawn at random to the oracle's."""
    big = big_of(config)
    drawn, router = losses("drawn", big, fast), losses("router", big, fast)
    oracle = losses("oracle", big, fast, config.modules.fault)
    come = [(a - b) / (a - c) for a, b, c in zip(drawn, router, oracle, strict=True)]
    figure = Figure.mean(come, "%")
    return Outcome(
        "less than half of the way from random routes to the oracle's",
        f"{figure.value:.1%} of it ({figure.low:.1%} to {figure.high:.1%}): drawn "
        f"{np.mean(drawn):.3f}, router {np.mean(router):.3f}, oracle {np.mean(oracle):.3f} nats",
        figure.high < 0.5,
        figure=figure,
        needed=0.5,
    )


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
