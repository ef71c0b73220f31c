"""Claims of serving fleets: two rivals, two workloads and a map of each, or a reason why not."""

import pytest

from workbench.catalogue import study
from workbench.kept_maps import shipped

SYSTEMS = (
    "attention-offloading", "cloudmatrix384", "dualmap", "fastswitch", "gradual-flow-time",
    "nanoflow", "nexus", "polca", "saga", "shift-parallelism", "splitwise", "stream2llm",
)  # fmt: skip
CLAIMS = [  # an equality or a formula is held against itself
    pytest.param(slug, claim, id=f"{slug}-{claim.id}")
    for slug in SYSTEMS
    for claim in study(slug).claims
    if claim.grade != "exact"
]


@pytest.mark.parametrize(("slug", "claim"), CLAIMS)
def test_it_is_held_against_two_rivals_on_two_workloads_or_says_why_not(slug, claim):
    """`test_studies.py --full` holds that the check tells of each by its name."""
    assert claim.held is not None
    for names in (claim.held.rivals, claim.held.workloads):
        assert len(set(names)) == len(names)
        assert len(names) >= 2 or claim.held.why


@pytest.mark.parametrize(("slug", "claim"), CLAIMS)
def test_a_map_says_where_it_stops(slug, claim):
    """One at least is shipped, drawn in full, by the study's own values. A speed's is drawn where
    the machine is at nothing else."""
    maps = {each.name: each for each in study(slug).regimes if each.claim == claim.id}
    assert maps
    drawn = {name: kept for name, kept in shipped(slug).items() if name in maps}
    assert drawn or claim.timed
    for name, kept in drawn.items():
        assert not kept.fast
        assert {point.value for point in kept.points} == set(maps[name].values)
        assert {point.line for point in kept.points} == set(maps[name].series)
