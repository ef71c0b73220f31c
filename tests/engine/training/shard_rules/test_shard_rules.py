"""Plans derived by two rules: those people wrote, exact when run, wrong where a rule is missing."""

import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Span
from engine.core.run import Run
from engine.models.families import FAMILIES
from engine.models.loading.find import find, public
from engine.models.parameters import all_parameters
from engine.models.reference import dense
from engine.training.derived_plans.config import PUBLIC, ShardRulesConfig
from engine.training.derived_plans.config import small as small_model
from engine.training.derived_plans.pipeline import preferences
from engine.training.derived_plans.run import ERROR, LOSS, OTHERWISE, run, sharded
from engine.training.parallel.tensor.shards import splits
from engine.training.shard_rules.plan import bytes_of_rank, cut_roles, families, hand_plan
from engine.training.shard_rules.rules import Rules, derive
from tests.engine.models import small


def test_every_family_that_ranks_know_has_a_hand_written_plan():
    kinds = {small.config(name).family for name in small.USUAL}
    assert kinds == set(families()) == set(PUBLIC) <= {kind for kind, _ in FAMILIES.values()}
    assert all(small_model(kind).family == kind for kind in kinds)


@pytest.mark.parametrize("name", sorted(set(small.FAMILIES) - set(small.USUAL)))
def test_the_others_are_refused_in_one_line(name):
    with pytest.raises(BadInput, match="no plan"):
        hand_plan(small.config(name))


@pytest.mark.parametrize("name", small.USUAL)
def test_the_rules_give_the_plan_by_hand_and_its_shards_compute_the_same(name):
    config = small.config(name)
    assert derive(config, 2, Rules()) == hand_plan(config)
    weights = {n: w.requires_grad_() for n, w in small.weights(config).items()}
    ids = torch.randint(config.vocab, (2, 13), generator=torch.Generator().manual_seed(0))
    whole = dense(config, weights, ids)
    leaves = list(weights.values())
    true = torch.autograd.grad(whole.square().mean(), leaves, materialize_grads=True)
    for ranks in (2, 3, 4):  # three divides neither heads nor the vocabulary of 97
        plan = derive(config, ranks, Rules())
        split = sharded(config, weights, plan, ranks)(ids)
        torch.testing.assert_close(split, whole, rtol=1e-4, atol=2e-5)
        found = torch.autograd.grad(split.square().mean(), leaves, materialize_grads=True)
        for one, other in zip(found, true, strict=True):
            assert (one - other).abs().max() <= 1e-5 * other.abs().max() + 1e-9


@pytest.mark.parametrize("name", [n for n in sorted(public()) if not find(n).config.unusual])
def test_public_models_of_any_size(name):
    config = find(name).config
    for ranks in (2, 4):
        if config.heads % ranks == 0 and config.kv_heads % ranks == 0:
            assert derive(config, ranks, Rules()) == hand_plan(config)


def test_the_plan_is_the_one_that_real_ranks_run():
    for name in small.USUAL:
        config = small.config(name)
        assert splits(config, 2) == hand_plan(config)


@pytest.mark.parametrize(
    ("rules", "fails"),
    [
        ({"attention": "as_fully_connected"}, {"deepseek_v2", "deepseek_v3"}),
        ({"attention": "off"}, set(PUBLIC)),
        ({"fully_connected": "in_order"}, set(PUBLIC) - {"gpt2"}),
        ({"fully_connected": "off"}, set(PUBLIC)),
        ({"swapped": True}, set(PUBLIC)),
    ],
)
def test_families_that_need_a_rule(rules, fails):
    given = Rules(**rules)
    found = {
        family
        for family in PUBLIC
        if derive(small_model(family), 2, given) != hand_plan(small_model(family))
    }
    assert found == fails


def test_shards_hold_the_bytes_that_are_told():
    for family in PUBLIC:
        config = small_model(family)
        weights = small.weights(config)
        for ranks in (1, 2, 8):
            plan = derive(config, ranks, Rules())
            held = [
                sum(
                    part.nbytes
                    for p in all_parameters(config)
                    for part in cut_roles(
                        p, weights[p.name], plan[p.name], rank, ranks, config.kv_heads
                    ).values()
                )
                for rank in range(ranks)
            ]
            assert max(held) == bytes_of_rank(config, plan, ranks, 4)


def test_a_run_tells_the_plan_and_trains_as_one_process():
    config = ShardRulesConfig(family="deepseek_v3", ranks=8, steps=3, rows=2, tokens=8)
    log = Run.execute(run, config).log
    levels = {(e.lane, e.name): e.value for e in log.of(Level)}
    assert levels["plan", OTHERWISE] == 0
    assert levels["logits", ERROR] <= 1e-5
    assert levels["gradients", ERROR] <= 1e-5
    assert levels["sharded", LOSS] == pytest.approx(levels["one process", LOSS], rel=1e-4)
    assert {s.lane for s in log.of(Span)} == {f"rank {rank}" for rank in range(8)}
    said = {m.name: m.text for m in log.of(Mark)}
    assert (said["q_a_proj"], said["q_b_proj"], said["o_proj"]) == ("whole", "rows", "columns")


def test_a_plan_that_does_not_fit_is_told_not_raised():
    config = update(ShardRulesConfig(steps=1), {"rules.fully_connected": "in_order"})
    log = Run.execute(run, config).log
    assert any(m.name == "does not run" for m in log.of(Mark))
    assert not any(e.name == ERROR for e in log.of(Level))


def test_preferences_are_predicted_by_which_of_a_pair_is_likelier():
    pipeline = preferences()
    batch = pipeline.collate([[[1, 2, 3], [1, 3, 2]], [[0, 1, 1], [0, 2, 3]]])
    fixed = torch.tensor([0.0, 1.0, 2.0, 4.0])
    found = pipeline.predict(lambda ids: fixed.expand(*ids.shape, 4), batch)
    assert found.tolist() == [0, 1]
