"""Checks of Duo-LLM's claims about losses, by way of choosing at equal compute."""

from functools import cache

import numpy as np
import torch
from torch import Tensor

from engine.core.config import update
from engine.core.paths import dataset
from engine.inference.config import InferenceConfig
from engine.inference.oracle.search import nats, picking, search, ways
from engine.models.config import ModelConfig
from engine.models.duo.routes import BIG
from engine.models.loading.find import find
from engine.models.text.tokenizer import Tokenizer
from engine.recipes.duo_series import RECIPE
from engine.recipes.folder import saved_weights
from workbench.study import Figure, Outcome, RunConfig

SEEDS, LAYERS = RECIPE.seeds, RECIPE.layers
MODEL = f"{RECIPE.name}/duo-0"
DRAWS = 4  # of random routes
LENGTH = 48  # tokens of a window that is judged
FEW = 6  # windows of a small check; a router's are cheap
Weights = dict[str, Tensor]


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
def loss(
    way: str, big: int, seed: int, count: int, fault: str = "none", without: int = 0
) -> float:  # fmt: skip
    """Nats a token over the judged windows, with `big` big feed-forwards a token, and no more than
    `without` layers in which an oracle may let it take none.

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
    those = ways(config.layers, big, without)
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


def losses(
    way: str, big: int, fast: bool, fault: str = "none", few: int = FEW, without: int = 0
) -> list[float]:  # fmt: skip
    """Of every model; in small over a few windows."""
    return [loss(way, big, seed, few if fast else 64, fault, without) for seed in range(SEEDS)]


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
    """One big one a token, where the oracle says, and in the others the small one or none, against
    big ones everywhere: one way alone."""
    return one_big_with(config, LAYERS - 1, run_config, fast)


def one_big_with(
    config: InferenceConfig, without: float, run_config: RunConfig, fast: bool
) -> Outcome:  # fmt: skip
    """The same with none in so many layers at most."""
    ours = losses("oracle", 1, fast, config.modules.fault, without=int(without))
    theirs = losses("oracle", LAYERS, fast)
    return below(ours, theirs, "less loss than with the big one in every layer")


def one_big_over_plain(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same against a model of big ones alone, trained as long by itself."""
    return over_plain_with(config, LAYERS - 1, run_config, fast)


def over_plain_with(
    config: InferenceConfig, without: float, run_config: RunConfig, fast: bool
) -> Outcome:  # fmt: skip
    """The same with none in so many layers at most."""
    ours = losses("oracle", 1, fast, config.modules.fault, without=int(without))
    return below(ours, losses("plain", 0, fast), "less loss than a model of big ones alone")


def one_beside_many(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """One big one a token against one small one: an oracle has as many ways of either."""
    return one_beside(config, LAYERS - 1, run_config, fast)


def one_beside(config: InferenceConfig, many: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same against so many big ones, where the oracle says."""
    ours = losses("oracle", 1, fast, config.modules.fault)
    theirs = losses("oracle", int(many), fast)
    return below(ours, theirs, f"less loss than with the big one in {many:g} layers of {LAYERS}")


def oracle_over_fixed(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The oracle against the layers that are best for all tokens."""
    return over_fixed_at(config, big_of(config), run_config, fast)


def over_fixed_at(
    config: InferenceConfig, big: float, run_config: RunConfig, fast: bool
) -> Outcome:  # fmt: skip
    """The same with so many big ones."""
    ours = losses("oracle", int(big), fast, config.modules.fault)
    theirs = losses("fixed", int(big), fast)
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
    return nearer_at(config, big_of(config), run_config, fast)


def nearer_at(config: InferenceConfig, big: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same with so many big ones."""
    drawn, router = (losses(way, int(big), fast) for way in ("drawn", "router"))
    oracle = losses("oracle", int(big), fast, config.modules.fault)
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
