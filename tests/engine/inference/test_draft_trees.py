"""Trees of drafts verified in one step: the answers are the plain ones, whatever branches."""

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.core.events import Level, Page, Token
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.draft_tree import DraftTree
from engine.inference.executors.tensors.gather import slotted
from engine.inference.policies.drafters.collaborative import Collaborative
from engine.inference.policies.drafters.ngram import Ngram
from engine.inference.requests.request import Request, sampling
from engine.kernels.drafts import trees
from engine.models.batch import Views, pack
from engine.models.kv import PagedKV
from engine.models.model import Model
from tests.engine.inference.play import Life
from tests.engine.inference.small import real_engine, request, serve
from tests.engine.inference.test_speculation import (
    VOCAB,
    draft,
    job,
    model,
    noisy,
    schedule,
    speculating,
)
from tests.engine.models import small

__all__ = ["draft", "model"]  # fixtures


def branching(draw: np.random.Generator) -> dict:
    fields = schedule(draw)
    fields["how"] = {"tokens": int(draw.choice([3, 7, 12])), "branches": int(draw.choice([2, 3]))}
    if draw.random() < 0.5:
        fields["how"]["shortest"] = 1
    return fields


@pytest.mark.parametrize("by_model", [False, True], ids=["ngram", "draft_model"])
def test_greedy_answers_are_the_plain_ones_under_any_schedule(model, draft, by_model, full):
    for seed in range(250 if full else 4):
        fields = branching(np.random.default_rng(seed))
        if by_model:
            fields["how"].pop("shortest", None)
        alone = [
            serve(real_engine(model, pages=200, prefix_sharing=False)[0], [one])[0]
            for one in job(np.random.default_rng(seed))
        ]
        held, events = speculating(model, draft if by_model else None, **fields)
        requests = job(np.random.default_rng(seed))
        held.prepare(requests)
        assert serve(held, requests) == alone, f"seed {seed}: {fields}"
        assert held.cache.held == 0, f"seed {seed}: pages are held by nobody"


def test_several_drafters_change_no_greedy_answer_under_any_schedule(model, draft, full):
    for seed in range(100 if full else 3):
        draw = np.random.default_rng(seed)
        fields = branching(draw)
        fields["how"].pop("shortest", None)
        fields["how"] |= {"kind": "collaborative", "branches": int(draw.integers(1, 4))}
        fields["how"]["routed"] = int(draw.integers(1, 4))
        fields["how"]["adaptive"] = not seed % 2
        if seed % 2:
            fields["batching"] = "alternating"
        alone = [
            serve(real_engine(model, pages=200, prefix_sharing=False)[0], [one])[0]
            for one in job(np.random.default_rng(seed))
        ]
        held, _ = speculating(model, draft, noisy(draft), model, **fields)
        requests = job(np.random.default_rng(seed))
        held.prepare(requests)
        assert serve(held, requests) == alone, f"seed {seed}: {fields}"
        assert held.cache.held == 0, f"seed {seed}: pages are held by nobody"


def test_drafts_that_follow_the_load_shrink_while_the_target_waits_and_grow_again():
    how = Collaborative(tokens=4, adaptive=True)
    lengths = [4]
    for waited in (0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0):
        lengths.append(how.next_length(lengths[-1], waited))
    assert lengths == [4, 3, 2, 1, 1, 2, 3, 4, 4, 4]
    wrong = how.model_copy(update={"collaboration_fault": "contrary"})
    assert wrong.next_length(2, 0.5) == 3 and wrong.next_length(2, 0.0) == 1
    assert Collaborative(tokens=4).next_length(1, 0.5) == 4


def test_requests_are_routed_to_the_drafters_that_foretold_them(model, draft):
    how = {"kind": "collaborative", "tokens": 6, "routed": 1}
    held, _ = speculating(model, noisy(draft), model, how=how, pages=200)
    held.add(request(9, 4, VOCAB, max_tokens=40, ignore_eos=True))
    for _ in range(9):
        held.step()
    drafter = held.executor.drafter
    assert held.scheduler.rows.known[0] >= 26  # of at most 41: trees, not chains, are verified
    assert drafter.route("r0").tolist() == [1]  # the target itself is never wrong
    assert drafter.expertise["r0"].right_M[1] == 1.0 > drafter.expertise["r0"].right_M[0]
    drafter.how = drafter.how._replace(wrongly=True)
    assert drafter.route("r0").tolist() == [0]


@pytest.mark.parametrize("family", small.EXACT)
def test_greedy_answers_are_the_plain_ones_in_every_family(family, full):
    if not full and family not in ("gemma-3", "deepseek-v3"):
        pytest.skip("with --full")
    config = small.config(family, max_position_embeddings=128)
    model = Model(config, small.weights(config), "float32")
    for seed in range(-(-250 // len(small.EXACT)) if full else 1):
        fields = branching(np.random.default_rng(seed))
        alone = [
            serve(real_engine(model, pages=200, prefix_sharing=False)[0], [one])[0]
            for one in job(np.random.default_rng(seed), config.vocab)
        ]
        fields["how"].pop("shortest", None)
        held, _ = speculating(model, noisy(model), **fields)
        assert serve(held, job(np.random.default_rng(seed), config.vocab)) == alone, f"seed {seed}"


@pytest.mark.parametrize("by_model", [False, True], ids=["ngram", "draft_model"])
def test_seeds_penalties_and_log_probabilities_are_as_without(model, draft, by_model):
    wishes = [
        {"temperature": 0.8, "seed": 5, "top_p": 0.9, "logprobs": 3},
        {"temperature": 1.0, "seed": 6, "repetition_penalty": 1.3, "min_tokens": 6},
        {"stop_tokens": tuple(range(0, VOCAB, 7)), "logprobs": 2},
        {"temperature": 0.7, "n": 3, "logit_bias": ((7, 4.0),)},
    ]
    how = {"tokens": 9, "branches": 3} | ({} if by_model else {"shortest": 1})
    found = []
    plain = real_engine(model, pages=300)[0]
    for held in (plain, speculating(model, draft if by_model else None, pages=300, how=how)[0]):
        for wish in wishes:
            held.add(job(np.random.default_rng(3), **{"max_tokens": 30, **wish})[0])
        held.hear()
        live = list(held.requests.values())
        held.run()
        found.append(
            [(r.id, r.tokens.tolist(), r.reason, np.round(r.logprobs, 4).tolist()) for r in live]
        )
    assert found[0] == found[1]


def test_more_is_kept_of_trees_and_what_is_refused_says_on_which_branch_it_stood(model, draft):
    steps, told = [], []
    for branches in (1, 3):
        how = {"tokens": 9, "branches": branches}
        held, events = speculating(model, draft, page_size=2, pages=300, how=how)
        answers = serve(held, [request(9, 4, VOCAB, max_tokens=60, ignore_eos=True)])
        tokens = [e for e in events if isinstance(e, Token)]
        kept = [e for e in tokens if e.accepted]
        assert len(kept) == len(answers[0]) == 60 and all(e.branch == 0 for e in kept)
        assert all(e.text and e.logprob < 0 for e in tokens)
        assert any(isinstance(e, Page) and e.why == "refused drafts" for e in events)
        told.append({e.branch for e in tokens if not e.accepted})
        steps.append(held.number)
    assert told[0] == {0} and {1, 2} <= told[1] and 0 not in told[1]


@pytest.mark.parametrize("kind", ["ngram", "draft_model"])
def test_a_modelled_tree_keeps_the_share_it_is_told(kind):
    said, lengths = [], []
    tree = {"acceptance": 0.6, "second_chance": 0.5, "tokens": 2, "branches": 2}
    deep = {**tree, "tokens": 9, "branches": 3}
    for how in ("none", {"kind": kind, **tree}, {"kind": kind, **deep}):
        fields = {"executor": "modelled", "speculation": how, "max_running": 64}
        config, events = InferenceConfig(**fields), []
        built = config.executor.build(config)
        held = Engine(config, built.executor, built.clock, events.append)
        wish = sampling(max_tokens=120, ignore_eos=True)
        prompts = [np.arange(8, dtype=np.int32) for _ in range(16)]
        said.append(serve(held, [Request(prompt, wish) for prompt in prompts]))
        told = [e.value for e in events if isinstance(e, Level) and e.name == "accepted_length"]
        lengths.append(np.mean(told) if told else 1.0)
    assert said[0] == said[1] == said[2]
    assert abs(lengths[1] - (1 + 0.6 + 0.4 * 0.5)) < 0.1 < lengths[2] - lengths[1]


@pytest.mark.parametrize("family", ["llama-3", "gemma-2"])
def test_a_row_told_by_slots_has_the_bits_of_one_told_by_pages(family):
    config = small.config(family, max_position_embeddings=128)
    model = Model(config, small.weights(config), "float32")
    said = []
    for by_slot in (False, True):
        kv, made = PagedKV(model.spec, 12, 8), []
        for chunk, start in ((40, 0), (1, 40), (3, 41)):
            tokens = np.random.default_rng(start).integers(0, config.vocab, chunk).tolist()
            batch = pack([tokens], [start], [[7, 2, 9, 4, 1, 11]], 8)
            if start == 41:  # a block before its own, too
                pair, table = np.array([0, 1], np.int32), np.array([[7, 2]], np.int32)
                nine = np.array([9], np.int32)
                batch.views = Views(pair, pair[:1], nine, nine, table)
            made.append(model.forward(slotted(batch, 8) if by_slot else batch, kv))
        said.append(torch.cat(made))
    assert torch.equal(*said) and not torch.equal(said[0][0], said[0][1])


def random_tree(draw: np.random.Generator, count: int) -> np.ndarray:
    return np.array([draw.integers(-1, i) if i else -1 for i in range(count)], np.int32)


def test_a_node_sees_its_ancestors_and_the_path_that_holds_comes_first():
    draw = np.random.default_rng(0)
    for _ in range(50):
        size, known, count = int(draw.integers(1, 5)), int(draw.integers(1, 9)), 6
        parents, tokens = random_tree(draw, count), draw.permutation(40)[:20].astype(np.int32)
        table = draw.permutation(30)[: -(-(known + count) // size)].astype(np.int32)
        slots = (table[:, None] * size + np.arange(size)).ravel()
        paths = []
        for node in range(count):
            path = [node]
            while parents[path[0]] >= 0:
                path.insert(0, int(parents[path[0]]))
            paths.append(path)
        seen, context = np.full((count, 20), -1, np.int32), np.empty(count, np.int32)
        zeros = np.zeros(count, np.int64)
        trees.seen(
            table[None], zeros, zeros + known, np.arange(count), zeros, parents, size, seen, context
        )
        for node, path in enumerate(paths):
            right = [*slots[:known], *slots[[known + each for each in path]]]
            assert seen[node, : context[node]].tolist() == right and context[node] == len(right)
        kept = paths[int(draw.integers(count))]
        said = np.full(count + 1, -1, np.int32)  # of the target, after each of the row's samples
        for before, node in zip([-1, *kept[:-1]], kept, strict=True):
            said[before + 1] = tokens[known + node]
        row, old = tokens[None].copy(), tokens[known : known + count]
        held, cached = np.empty(1, np.int32), np.empty(1, np.int32)
        order, branch = np.arange(count + 1), np.empty(count + 1, np.int32)
        moves = np.empty((count, 2), np.int32)
        one, here = np.zeros(1, np.int64), np.array([known], np.int32)
        number = trees.straighten(
            row, table[None], one, here, parents, np.array([count], np.int32), said, 1, size,
            held, cached, order, branch, moves,
        )  # fmt: skip
        assert held[0] == len(kept) and order[: len(kept)].tolist() == kept
        assert cached[0] == len(kept) - (kept[-1] not in parents)
        assert sorted(order[:count].tolist()) == list(range(count))
        assert row[0, known : known + count].tolist() == old[order[:count]].tolist()
        right = {(slots[known + n], slots[known + at]) for at, n in enumerate(kept) if n != at}
        assert {tuple(pair) for pair in moves[:number].tolist()} == right
        assert branch[: len(kept)].tolist() == [0] * len(kept)
        assert (branch[len(kept) : count] > 0).all()


def test_continuations_of_several_places_share_what_they_begin_with():
    row = np.array([[5, 1, 2, 3, 5, 1, 2, 4, 5, 1, 9, 9, 5, 0, 0, 0, 0, 0]], np.int32)
    found, parents = np.empty((1, 5), np.int32), np.full((1, 5), -9, np.int32)
    one, known = np.zeros(1, np.int64), np.array([13], np.int32)
    trees.look_up(row, one, known, 1, 3, 3, found, parents)
    assert found[0].tolist() == [1, 9, 2, 4, 3]
    assert parents[0].tolist() == [-1, 0, 0, 2, 2]


def test_a_tree_grows_along_the_likeliest_paths():
    logits = np.log(np.array([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], np.float32))
    parents, tokens = np.empty(5, np.int32), np.empty(5, np.int32)
    tree = DraftTree(parents, tokens, 2)
    assert tree.grow(logits[:1]) == [0, 1]
    assert tree.grow(logits[1:]) == [2, 3]  # 0.6 · 0.5, 0.3 · 0.8
    assert tree.grow(logits[:2]) == []
    assert parents.tolist() == [-1, -1, 0, 1, 2] and tokens.tolist() == [0, 1, 0, 2, 0]


def test_what_is_no_tree_is_refused_in_one_line(model, monkeypatch):
    def after_itself(policy, tokens_RW, rows_D, known_R, places, drafts_DK, parents_DK):
        drafts_DK[:] = parents_DK[:] = np.arange(drafts_DK.shape[1])

    def twice(policy, tokens_RW, rows_D, known_R, places, drafts_DK, parents_DK):
        drafts_DK[:], parents_DK[:] = 1, -1

    for propose, line in (
        (after_itself, "speculation Ngram: draft 0 of a step follows 0, which is not before it"),
        (twice, "two drafts of request .* are the same token after the same; draft it once"),
    ):
        monkeypatch.setattr(Ngram, "propose", propose)
        held, _ = speculating(model, None, how={"branches": 2})
        with pytest.raises(BadInput, match=line):
            serve(held, [request(9, 4, VOCAB)])
    with pytest.raises(BadInput, match="drafts that branch have no one length to align"):
        speculating(model, None, how={"branches": 2, "alignment": "padded"})
    with pytest.raises(BadInput, match="attention of drafts that branch is not sampled"):
        speculating(model, None, how={"branches": 2}, attention_every=1)


def test_a_fork_of_a_row_that_is_behind_has_drafts_of_its_own():
    """Pages beyond what is cached are not shared: this life shared one and wrote there twice."""
    life = Life(21763)
    for _ in range(60):
        life.play()
    life.end()
