"""Global prefix groups against brute force, and the order BatchLLM gives a job."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.inference.policies.ordering.global_prefix import GlobalPrefix
from engine.inference.policies.prefix_groups import groups, prefix_tree, saved
from engine.inference.requests.request import Request, Sampling

prompts_of = st.lists(
    st.lists(st.integers(0, 1), min_size=1, max_size=7), min_size=1, max_size=7
).map(lambda rows: [np.array(row, np.int32) for row in rows])


def shareable(one, other):
    """Tokens two prompts can share: their common prefix without the last token of either."""
    length = min(len(one), len(other)) - 1
    for place in range(length):
        if one[place] != other[place]:
            return place
    return length


def brute_force(prompts, unit):
    """Most tokens that any set of prefixes saves, each prompt using its longest one in the set."""
    prefixes = set()
    for one, other in combinations(range(len(prompts)), 2):
        length = shareable(prompts[one], prompts[other]) // unit * unit
        if length:
            prefixes.add(tuple(prompts[one][:length].tolist()))
    best = 0
    for chosen in chain.from_iterable(combinations(prefixes, n) for n in range(len(prefixes) + 1)):
        total = -sum(map(len, chosen))
        for prompt in prompts:
            fits = [len(p) for p in chosen if len(p) < len(prompt) and starts(prompt, p)]
            total += max(fits, default=0)
        best = max(best, total)
    return best


def starts(prompt, prefix):
    return tuple(prompt[: len(prefix)].tolist()) == prefix


@settings(max_examples=150, deadline=None)
@given(prompts_of, st.integers(1, 2))
def test_the_dynamic_programme_saves_as_much_as_brute_force(prompts, unit):
    found = groups(prompts, unit)
    assert saved(found) == brute_force(prompts, unit)


@settings(max_examples=150, deadline=None)
@given(prompts_of, st.integers(1, 3))
def test_every_prompt_is_in_one_group_and_shares_its_prefix(prompts, unit):
    found = groups(prompts, unit)
    assert sorted(chain.from_iterable(g.members for g in found)) == list(range(len(prompts)))
    for group in found:
        assert group.shared % unit == 0
        heads = {tuple(prompts[m][: group.shared].tolist()) for m in group.members}
        assert len(heads) == 1 and (group.shared == 0) == (len(group.members) == 1)
        assert all(group.shared < len(prompts[m]) for m in group.members if group.shared)


def test_a_grandchild_joins_the_prefix_that_saves_more():
    base = list(range(100))
    near = [np.array([*base, *range(200, 210), 1000 + i], np.int32) for i in range(2)]
    far = [np.array([*base, 500 + i, 600], np.int32) for i in range(5)]
    # A group of their own would save the two 10 more tokens but compute the 100 again.
    found = groups(near + far, 1)
    assert [g.shared for g in found] == [100] and len(found[0].members) == 7


def test_the_tree_is_as_deep_as_the_prompts_agree():
    tree = prefix_tree([np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5]), np.array([1, 9])], 1)
    assert [c.depth for c in tree.children] == [1]
    assert [c.depth for c in tree.children[0].children] == [3]


def request(prompt, answer):
    return Request(np.array(prompt, np.int32), Sampling(max_tokens=answer))


def test_members_of_a_group_stand_together_and_decode_heavy_groups_first():
    long = [request([*range(50), 100 + i], 2) for i in range(3)]
    short = [request([*range(60, 70), 200 + i], 40) for i in range(3)]
    job = [long[0], short[0], long[1], short[1], long[2], short[2]]
    ranking = GlobalPrefix().prepare(job, 1)
    assert ranking.rank_N.tolist() == [3, 0, 4, 1, 5, 2]
    assert ranking.shared_N[::2].tolist() == [50] * 3 and len(set(ranking.group_N.tolist())) == 2
    ranking = GlobalPrefix(decode_heavy_first=False).prepare(job, 1)
    ranks = [sorted(ranking.rank_N[at::2].tolist()) for at in (0, 1)]
    assert sorted(ranks) == [[0, 1, 2], [3, 4, 5]]
    ranking = GlobalPrefix(fault="light_first").prepare(job, 1)
    assert ranking.rank_N.tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("prompts", [[[1]], [[1, 2], [3, 4]], [[5]] * 4])
def test_prompts_with_nothing_to_share_stay_alone(prompts):
    job = [request(p, 1) for p in prompts]
    ranking = GlobalPrefix().prepare(job, 16)
    assert (ranking.group_N == -1).all() and not ranking.shared_N.any()
