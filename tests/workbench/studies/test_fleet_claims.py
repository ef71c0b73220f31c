"""Claims of serving fleets: two rivals and two workloads of each, or a reason why not."""

import pytest

from workbench.catalogue import study

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
