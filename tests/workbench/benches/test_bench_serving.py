"""The bench of a served model's neighbours: what it times is there, its limits can be missed."""

import time

import numpy as np

from tests.workbench.api.asking import served
from tests.workbench.toy_engine import toy_live
from workbench.benches import serving
from workbench.benches._neighbour import Neighbour


def test_a_template_is_rendered_here_and_aside_alike():
    rows = serving._rendered(3)
    assert [row["times"] for row in rows] == [3, 3] and all(row["usual"] > 0 for row in rows)
    head, *told = serving.table(rows)
    assert all(len(one) == len(head) for one in told)


def test_a_neighbour_times_each_token_and_each_chat():
    with served(toy_live(seconds=0.01)) as port, Neighbour(port, "toy") as one:
        time.sleep(0.5)
    assert len(one.tokens) > 2 and len(one.chats) > 1
    assert np.median(one.tokens) >= 0.01 and min(one.chats) >= 0.01
