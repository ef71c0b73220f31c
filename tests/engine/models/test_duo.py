"""Feed-forwards of two sizes: routes, the model beside its reference, the search beside whole
passes, and what modules cost."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.inference.executors.tensors.module_counts import module_work
from engine.inference.oracle.search import best, nats, search, ways
from engine.models.batch import pack
from engine.models.duo.routes import BIG, NONE, SMALL, alone, counts, routed
from engine.models.families import parse
from engine.models.kv import PagedKV
from engine.models.model import Model
from engine.models.ops import plain_ops
from engine.models.reference import dense
from engine.recipes.duo_series import RECIPE, shapes
from engine.training.losses.language import fresh_weights

DUO, PLAIN = shapes(RECIPE)
LAYERS = DUO.layers


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    return fresh_weights(DUO, 3)


def ids(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(2, DUO.vocab, (rows, length), generator=torch.manual_seed(seed))


def with_(**how: object) -> object:
    assert DUO.duo is not None
    return replace(DUO, duo=replace(DUO.duo, **how))


@pytest.mark.parametrize("big", range(LAYERS + 1))
def test_the_router_gives_every_token_exactly_as_many_big_ones_as_it_may(big: int) -> None:
    logits_LTK = torch.randn(LAYERS, 50, LAYERS, generator=torch.manual_seed(big))
    left_T, taken = torch.full((50,), big), []
    for layer, logits_TK in enumerate(logits_LTK):
        choice_T, left_T = routed(logits_TK, left_T, LAYERS - layer)
        taken.append(choice_T)
    assert (torch.stack(taken) == BIG).sum(0).unique().tolist() == [big]
    assert not left_T.any()


@pytest.mark.parametrize("how", [{"big": 2}, {"routes": ("Bs-B", "----", "sBsB")}], ids=str)
def test_the_model_computes_what_the_reference_computes(how, weights) -> None:
    config, text = with_(**how), ids(1, 12)[0]
    expected = dense(config, weights, text[None])[0]
    for made in (Model(config, weights, ops=plain_ops()), Model(config, weights)):
        kv = PagedKV(made.spec, 4, 16)
        found = made.forward(pack([text.tolist()], [0], [[0]], 16), kv)
        assert torch.allclose(found[0], expected[-1], atol=1e-4)
        assert len(made.taken) == LAYERS


@pytest.mark.parametrize(("which", "letter"), [(BIG, "B"), (SMALL, "s")])
def test_one_module_everywhere_is_the_plain_transformer(which, letter, weights) -> None:
    shape = PLAIN if which == BIG else replace(PLAIN, width=DUO.duo.small)
    one = dense(with_(routes=(letter * LAYERS,)), weights, ids(2, 9))
    assert torch.equal(one, dense(shape, alone(weights, which), ids(2, 9)))


def test_a_search_loses_what_whole_passes_on_its_routes_lose(weights) -> None:
    for big, skips in ((0, 0), (1, 1), (1, LAYERS), (2, 0), (LAYERS, 0)):
        lost, routes_BTL = search(DUO, weights, ids(3, 14), ways(LAYERS, big, skips))
        assert torch.allclose(lost, nats(DUO, weights, ids(3, 14), routes_BTL), atol=1e-5)
        assert (routes_BTL == BIG).sum(-1).unique().tolist() == [big]
        assert (routes_BTL == NONE).sum(-1).max() <= skips


def test_a_search_finds_the_best_route_of_the_first_token_and_none_is_better(weights) -> None:
    text, those = ids(4, 2), ways(LAYERS, 1, LAYERS)
    every = [route for route in product((NONE, SMALL, BIG), repeat=LAYERS) if route.count(BIG) == 1]
    assert sorted(those.routes_WL.tolist()) == sorted(map(list, every))
    tried = [nats(DUO, weights, text, torch.tensor(r).expand(4, 1, -1))[:, 0] for r in every]
    lost, _ = search(DUO, weights, text, those, best)
    assert torch.allclose(lost[:, 0], torch.stack(tried).min(0).values, atol=1e-5)


def test_modules_that_nobody_takes_cost_nothing() -> None:
    none = [torch.full((7,), NONE)] * LAYERS
    assert module_work(DUO, counts(none), 4) == (0.0, 0.0)
    one = [*none[1:], torch.tensor([BIG, SMALL, NONE, BIG])]
    flops, moved = module_work(DUO, counts(one), 4)
    wide, narrow = 3 * DUO.width * DUO.hidden, 3 * DUO.duo.small * DUO.hidden
    assert flops == 2 * (2 * wide + narrow)
    passed = 2 * 3 * (DUO.width + DUO.hidden) + 3 * (DUO.duo.small + DUO.hidden)
    assert moved == 4 * (wide + narrow + passed)


def test_a_config_with_a_wrong_number_of_big_ones_is_refused() -> None:
    assert parse({**PLAIN.raw, "duo_small_size": 8, "duo_big_layers": 2}).duo.big == 2
    with pytest.raises(BadInput, match="duo_big_layers"):
        parse({**PLAIN.raw, "duo_small_size": 8, "duo_big_layers": LAYERS + 1})
    assert np.isclose(DUO.duo.used(True, False, LAYERS), 1 / LAYERS)
