"""Counts of a GPT's step against the papers' closed forms, and the fit against its neighbours."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.training.pipeline import transformer_cost as cost
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.stage_costs.transformer import FITTED, Transformer
from engine.training.pipeline.transformer_cost import Shape
from workbench.studies.training._megatron import changes, predicted, published, rows

SHAPE = Shape(6144, 48, 64, 51200, 2048, 4, tensor=8)


def test_parameters_are_the_formula():
    h, layers, entries = 6144, 48, 51200 + 2048
    formula = 12 * layers * h * h * (1 + 13 / (12 * h) + entries / (12 * layers * h))
    assert cost.parameters(SHAPE) == pytest.approx(formula, rel=1e-14)


@pytest.mark.parametrize(("recompute", "factor"), [("none", 72), ("full", 96)])
def test_flops_are_the_formula(recompute, factor):
    shape = Shape(6144, 48, 64, 51200, 2048, 4, recompute=recompute)
    h, layers, batch = 6144, 48, 12
    body = factor * batch * 2048 * layers * h * h * (1 + 2048 / (6 * h))
    assert cost.step_flops(shape, batch) == pytest.approx(body + 6 * batch * 2048 * h * 51200)


@pytest.mark.parametrize(
    ("recompute", "split", "units"),
    [
        ("none", False, 10 + 24 / 8 + 5 * 64 * 2048 / 6144 / 8),
        ("none", True, (34 + 5 * 64 * 2048 / 6144) / 8),
        ("selective", False, 10 + 24 / 8),
        ("selective", True, 34 / 8),
        ("full", False, 2),
    ],
)
def test_activations_are_table_2(recompute, split, units):
    shape = Shape(
        6144, 48, 64, 51200, 2048, 4, tensor=8, sequence_parallel=split, recompute=recompute
    )
    assert cost.activation_bytes(shape) == pytest.approx(units * 4 * 2048 * 6144)


def test_the_efficiency_is_the_least_squares_fit_over_the_rows_it_names():
    def scatter(efficiency: float) -> float:
        config = PipelineConfig(passes=Transformer(gemm_efficiency=efficiency))
        fitted = [row for row in rows("weak_scaling") if row["fitted"]]
        ratios = [predicted(update(config, changes(row)))[0] / published(row) for row in fitted]
        return float((np.log(ratios) ** 2).sum())

    assert scatter(FITTED) < min(scatter(FITTED - 0.004), scatter(FITTED + 0.004))


def test_what_does_not_divide_is_refused_with_the_number():
    with pytest.raises(BadInput, match="80 layers do not divide among 7 chunks"):
        Transformer().share(7, 1)
    with pytest.raises(BadInput, match="96 heads do not divide among 7 tensor ranks"):
        Transformer(tensor=7).share(8, 1)


def test_replicas_of_one_node_share_its_networks():
    alone = Transformer(tensor=1).share(8, 1).reduce * 8
    whole = Transformer(tensor=8).share(8, 1).reduce * 8
    assert alone == pytest.approx(whole, rel=1e-9)  # 8 times the gradients over 8 networks
    assert Transformer(data=1).share(8, 1).reduce == 0
