"""A series of small models with a small and a big feed-forward in every layer, a router of each,
and beside each a plain model of the big ones alone.

While a model learns, every token takes the small one, the big one or none in every layer, drawn
anew, so that any route works; each window draws how many are big. Then the model stands still and
its router learns: every route of every token is tried, and it lowers the loss that its choices are
expected to have.
"""

from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.clock import Clock
from engine.core.config import knob, update
from engine.inference.oracle.search import Ways, places, ways
from engine.models.config import ModelConfig
from engine.models.duo.routes import BIG, NONE, SMALL
from engine.models.families import parse
from engine.models.footprint import parameter_count
from engine.models.reference import dense
from engine.recipes.begin import begin, origin
from engine.recipes.folder import saved_weights, whole, write_json, write_model
from engine.recipes.recipe import Shape
from engine.training.data.corpus import gather, standard_library
from engine.training.data.tokenizer import train_tokenizer
from engine.training.data.windows import token_stream, windows
from engine.training.loop.checkpoint import remove_checkpoint
from engine.training.loop.settings import Training
from engine.training.loop.single_process import SingleProcess
from engine.training.loop.training_loop import Emit, training_loop
from engine.training.losses.evaluate import score
from engine.training.losses.language import fresh_weights, ids_of, train

ENTRIES = 258  # every byte, and the two marks
AWAY = 1 << 20  # steps from here on are of windows that routers learn from


class DuoRecipe(Shape):
    """A small Llama, its small modules, its training and that of its router."""

    name: str = knob(doc="Name of the series and of its folder")
    about: str = knob("", "What it is for, one line")
    seeds: int = knob(5, "Models, each beside a plain one", low=1, high=64)
    small: int = knob(16, "Width of the small feed-forward", low=1, high=32_768)
    skipped: float = knob(0.1, "Share of feed-forwards left out in training", low=0.0, high=1.0)
    texts: int = knob(256, "Windows that the router learns from, of each number of big ones",
                      low=1, high=4096)  # fmt: skip
    passes: int = knob(60, "Times that it goes over them", low=1, high=1000)
    router_rate: float = knob(0.02, "Its learning rate", low=1e-6, high=1.0, log=True)
    judged: int = knob(10_000, "Tokens that each is judged by", low=64, high=1 << 24)


RECIPE = DuoRecipe(
    name="duo",
    about="Small models of Python whose tokens take a small or a big feed-forward in each layer",
    hidden=32,
    layers=4,
    heads=2,
    kv_heads=1,
    head_dim=16,
    width=128,
    training=Training(
        steps=1000, warmup=50, decay=350, rate=6e-3, tokens=1024, context=64, long_context=64,
        precision="float32", report=50, evaluate=1000, checkpoint=250,
    ),
)  # fmt: skip
FAST = {"training.steps": 2, "training.warmup": 1, "training.decay": 1, "training.tokens": 128,
        "training.evaluate": 2, "seeds": 1, "texts": 2, "passes": 2, "judged": 256}  # fmt: skip


@cache
def duo_recipes() -> dict[str, DuoRecipe]:
    """Recipes of such series by name."""
    return {RECIPE.name: RECIPE}


def shapes(recipe: DuoRecipe) -> tuple[ModelConfig, ModelConfig]:
    """The model of two sizes, and the plain one of the big modules alone."""
    plain = recipe.llama(ENTRIES)
    return parse({**plain.raw, "duo_small_size": recipe.small}), plain


def make_duo(
    recipe: DuoRecipe, out: Path, emit: Emit, clock: Clock, fast: bool = False,
    root: Path | None = None,
) -> Path:  # fmt: skip
    """Train, judge and write every model of the series that is not there yet; `out`."""
    recipe = update(recipe, FAST) if fast else recipe
    corpus = gather(root or standard_library())
    tokenizer = train_tokenizer((), ENTRIES)
    training = token_stream(tokenizer, corpus.training)
    validation = token_stream(tokenizer, corpus.validation)[: recipe.judged]
    begin(out, recipe, training)
    duo, plain = shapes(recipe)
    losses: dict[str, list[float]] = {"plain": [], "big_in_every_layer": [], "router": []}
    for seed in range(recipe.seeds):
        learning = update(recipe.training, {"seed": seed})
        for kind, config in (("plain", plain), ("duo", duo)):
            folder, checkpoint = out / f"{kind}-{seed}", out / f"{kind}-{seed}.safetensors"
            if not whole(folder):
                if config.duo is None:
                    weights = train(
                        config, learning, training, validation[:4096], emit=emit, clock=clock,
                        checkpoint=checkpoint, origin=origin(recipe, training),
                    )  # fmt: skip
                else:
                    weights = any_route(
                        config, recipe, learning, training, emit=emit, clock=clock,
                        checkpoint=checkpoint,
                    )  # fmt: skip
                    weights |= router(config, weights, recipe, learning, training)
                write_model(folder, config, weights, tokenizer)
                remove_checkpoint(checkpoint)
        there, length = saved_weights(out / f"duo-{seed}"), recipe.training.context
        alone = saved_weights(out / f"plain-{seed}")
        losses["plain"].append(score(*alone, validation, length).loss)
        losses["big_in_every_layer"].append(score(plain, there[1], validation, length).loss)
        losses["router"].append(score(*there, validation, length).loss)
    facts = {
        "name": recipe.name,
        "about": recipe.about,
        "command": f"workbench train {recipe.name}",
        "parameters": {"duo": parameter_count(duo), "plain": parameter_count(plain)},
        "tokens_seen": recipe.training.tokens_seen(),
        "corpus": corpus.digest,
        "validation_loss": losses,
    }
    write_json(out / "recipe.json", facts)
    return out


def any_route(
    config: ModelConfig, recipe: DuoRecipe, learning: Training, training: np.ndarray, *,
    emit: Emit, clock: Clock, checkpoint: Path,
) -> dict[str, Tensor]:  # fmt: skip
    """Weights that foretell the next token whatever route each token takes."""
    given = ids_of(learning, training)

    def loss(weights: dict[str, Tensor], step: int) -> tuple[Tensor, int]:
        ids_BT = given(step)
        routes_BTL = drawn(config, recipe.skipped, ids_BT[:, 1:].shape, [learning.seed, step])
        logits_BTV = dense(config, weights, ids_BT[:, :-1], routes_BTL=routes_BTL)
        targets = ids_BT[:, 1:].flatten()
        return F.cross_entropy(logits_BTV.flatten(0, 1), targets), len(targets)

    learner = SingleProcess(fresh_weights(config, learning.seed), learning, loss, checkpoint)
    training_loop(
        learner, learning, lambda weights, step: {}, emit=emit, clock=clock,
        origin=origin(recipe, training),
    )  # fmt: skip
    return learner.whole()


def drawn(config: ModelConfig, skipped: float, shape: torch.Size, seed: list[int]) -> Tensor:
    """Routes int64 [B, T, L]: each window draws how many are big, each token and layer its own."""
    chance = np.random.default_rng(seed)
    size = (*shape, config.layers)
    big_B = chance.random((shape[0], 1, 1))
    choice = np.where(chance.random(size) < big_B, BIG, SMALL)
    return torch.from_numpy(np.where(chance.random(size) < skipped, NONE, choice))


def router(
    config: ModelConfig, weights: dict[str, Tensor], recipe: DuoRecipe, learning: Training,
    training: np.ndarray,
) -> dict[str, Tensor]:  # fmt: skip
    """The router's weights by name: those with the least expected loss over tokens whose routes
    were all tried, behind tokens that took any."""
    chance = torch.Generator().manual_seed(learning.seed)
    tried: list[tuple[Ways, list[Tensor], Tensor]] = []
    for big in range(1, config.layers):
        found = windows(training, learning.seed, AWAY + big, recipe.texts, learning.context)
        those, ids_BT = ways(config.layers, big), torch.from_numpy(found)

        def anyhow(nats_BW: Tensor) -> Tensor:
            return torch.randint(nats_BW.shape[1], (len(nats_BW),), generator=chance)

        with torch.no_grad():
            every = list(places(config, weights, ids_BT, those, anyhow))
        inputs = [torch.cat(each) for each in zip(*(p.inputs for p in every), strict=True)]
        tried.append((those, inputs, torch.cat([place.nats_BW for place in every])))
    sizes = config.layers, config.layers
    weight = torch.zeros(*sizes, config.hidden, requires_grad=True)
    bias = torch.zeros(sizes, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=recipe.router_rate)
    for _ in range(recipe.passes):
        for at in torch.randperm(len(tried), generator=chance).tolist():
            optimizer.zero_grad()
            expected(weight, bias, *tried[at]).backward()
            optimizer.step()
    made = {}
    for layer in range(config.layers):
        root = f"model.layers.{layer}.mlp.router"
        made[f"{root}.weight"] = weight[layer].detach()
        made[f"{root}.bias"] = bias[layer].detach()
    return made


def expected(
    weight_LLC: Tensor, bias_LL: Tensor, those: Ways, inputs: list[Tensor], nats_BW: Tensor
) -> Tensor:
    """Nats of the next token, were each layer's module drawn by the router's odds; of B tokens, of
    which every layer's inputs, [B, N, C], and what every way loses are known."""
    layers, log_BN = len(those.levels), torch.zeros(len(nats_BW), 1)
    for layer, (level, x_BNC) in enumerate(zip(those.levels, inputs, strict=True)):
        logits_BNL = F.linear(x_BNC, weight_LLC[layer], bias_LL[layer])[:, level.parent_N]
        at_1N1 = (level.left_N - 1).clamp(min=0)[None, :, None].expand(len(log_BN), -1, 1)
        logit_BN = logits_BNL.gather(-1, at_1N1)[..., 0]
        odds_BN = F.logsigmoid(torch.where(level.choice_N == BIG, logit_BN, -logit_BN))
        free_N = (level.left_N > 0) & (level.left_N < layers - layer)
        log_BN = log_BN[:, level.parent_N] + odds_BN * free_N
    return (log_BN.exp() * nats_BW).sum(1).mean()
