"""The bench of shared links: its cases are what they say; its table has a cell for each head."""

import numpy as np

from engine.distributed.flows import reference
from workbench.benches import links


def test_a_case_is_timed_beside_the_plain_form_and_tabled():
    work = links._collective("ethernet-pods", "ring", 8)
    assert len(work) <= links.PLAIN
    np.testing.assert_allclose(work.played().stop, reference.play(work.graph())[1], rtol=1e-9)
    row = links._row("ring", work, [1.0, 2.0, 2.0])
    assert row["tasks"] == len(work) and row["events_per_second"] == len(work)
    head, told = links.table([row])
    assert len(head) == len(told)
