"""The driver of a model with feed-forwards of two sizes: serves its requests, then finds for each
text in hindsight the routes that would have foretold it best at the same compute.

Of both the choice of every token in every layer is told, and over the number of big ones what each
way of choosing loses.
"""

import numpy as np
import torch
from torch import Tensor

from engine.core.config import update
from engine.core.events import Blob, Branch
from engine.core.plot import Plot
from engine.core.run import Live
from engine.inference.config import InferenceConfig
from engine.inference.kept_tokens import kept
from engine.inference.oracle.search import nats, picking, search, ways
from engine.inference.run import run_on
from engine.inference.told_modules import TAKEN
from engine.models.config import ModelConfig
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.find import find

HINDSIGHT = " in hindsight"  # behind a request's name
TEXTS = 3  # of which routes are searched
LOSS = Plot(
    "What a way of choosing loses", "big feed-forwards of a token", "loss (nats a token)",
    zero=False,
)  # fmt: skip
ASKED = "How much is lost by who says which tokens get the big ones?"
WAYS = ("oracle", "router", "drawn")


def run(config: InferenceConfig, live: Live) -> None:
    """Serve, then search."""
    live.report(f"opening the model {config.model}", 0, 0)
    built = config.executor.build(config)
    run_on(config, built, live, (LOSS,), ASKED)
    found = find(config.model)
    shape = config.modules.of(found.config)
    if found.folder is None or shape.duo is None:
        return
    stored = Checkpoint(found.folder, found.config)
    weights = {name: tensor.float() for name, tensor in stored.items()}
    texts = {name: each for name, each in kept(live.log.blobs).items() if len(each) > 1}
    ids = {name: torch.from_numpy(each.astype(np.int64))[None] for name, each in texts.items()}
    ids = dict(list(ids.items())[:TEXTS])
    big, fault = shape.duo.big, config.modules.fault
    for done, (name, ids_1T) in enumerate(ids.items()):
        live.report("searching routes in hindsight", done, len(ids))
        _, routes_1TL = search(shape, weights, ids_1T, ways(shape.layers, big), picking(fault))
        _tell(live, name, routes_1TL[0].numpy().astype(np.int8))
    if ids:
        _draw(config, found.config, weights, list(ids.values()), live)


def _tell(live: Live, name: str, routes_TL: np.ndarray) -> None:
    """A request's routes in hindsight, as those of a thread beside it."""
    now, twin = live.log.duration, name + HINDSIGHT
    ref = f"{TAKEN}{twin}/0"
    live.log.blobs[ref] = routes_TL
    live.emit(Branch(now, twin, name, "finished", "the routes with the least loss"))
    live.emit(Blob(now, ref, ref, list(routes_TL.shape)))


def _draw(
    config: InferenceConfig, model: ModelConfig, weights: dict[str, Tensor], ids: list[Tensor],
    live: Live,
) -> None:  # fmt: skip
    """Curves of nats a token over the number of big ones, by way of choosing."""
    points: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for big in range(model.layers + 1):
        live.report("losses by big feed-forwards", big, model.layers + 1)
        live.poll(live.log.duration)
        for name in WAYS:
            if name == "oracle":
                those, fault = ways(model.layers, big), config.modules.fault
                lost = [search(model, weights, each, those, picking(fault))[0] for each in ids]
            else:
                how = update(config, {"modules": name, "modules.big": big}).modules.of(model)
                lost = [nats(how, weights, each) for each in ids]
            points[name].append((big, float(torch.cat(lost, 1).mean())))
            live.curve(live.log.duration, LOSS, name, points[name])
