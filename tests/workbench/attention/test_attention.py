"""The attention reader: a real run's requests, their pages and tokens, and the page about them."""

import time

import numpy as np
import pytest
from msgspec.structs import replace

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.kept_tokens import MOST, PREFIX, KeptTokens, kept
from engine.inference.requests.request import Request
from engine.inference.run import run as serve
from widgets.canvas.drawing import source
from workbench.attention.ended import MODELLED, WITHOUT, ended, why_none
from workbench.attention.page import AttentionPage
from workbench.attention.readings import KEPT, Readings


@pytest.fixture(scope="module")
def real():
    """A short real run, as if it had been watched live."""
    asked = InferenceConfig(model="stdlib-5m", pages=64)
    asked = asked.model_copy(update={"workload": asked.workload.model_copy(update={"count": 2})})
    return Run.execute(serve, asked)


def request(name, count, salt=""):
    made = Request(np.arange(count, dtype=np.int32), id=name, salt=salt)
    made.tokens = made.prompt
    return made


def test_tokens_of_ended_requests_lie_beside_a_real_runs_log(real):
    found = ended(real, "r0")
    assert len(found.tokens_N) > 4 and found.tokens_N.dtype == np.int32
    assert "".join(found.texts()).strip() and len(found.texts()) == len(found.tokens_N)
    starts = [start for start, _ in found.pages]
    assert starts == list(range(0, len(found.tokens_N), found.page_size))[: len(starts)]
    assert 0 < found.moment < real.log.duration


def test_of_clients_with_a_key_nothing_is_kept_and_the_oldest_go():
    blobs = {}
    keeper = KeptTokens(blobs)
    keeper.keep(request("private", 8, salt="key"))
    for name in "ab":
        keeper.keep(request(name, MOST // 2 + 1))
    assert list(blobs) == [f"{PREFIX}b"] and list(kept(blobs)) == ["b"]


def test_a_modelled_run_says_that_there_is_none(real):
    opened = replace(real.log.opened, clock="virtual")
    assert why_none(Run(Log([opened]))) == MODELLED
    assert why_none(Run(Log([real.log.opened]))) == WITHOUT
    with pytest.raises(BadInput, match="modelled"):
        ended(Run(Log([opened])), "r0")
    with pytest.raises(BadInput, match="has not ended"):
        ended(real, "nobody")


def test_a_recorded_run_opens_no_folder_of_this_machine(real):
    opened = replace(real.log.opened, config={**real.log.opened.config, "model": "/etc"})
    log = Log([opened])
    log.blobs.update(real.log.blobs)
    with pytest.raises(BadInput, match="come with the workbench"):
        ended(Run(log), "r0").open()


def test_a_page_chosen_below_marks_its_columns_above_and_back(real):
    page = AttentionPage(real, "a run", Readings(), "r1")
    for _ in range(6000):
        page.look()
        if page.shown is not None:
            break
        time.sleep(0.05)
    assert page.reading.failure == ""
    assert page.readings.tiles(page.reading.key).tile(0, 0, 0, 0, 0, "most")
    number = ended(real, "r1").pages[0][1]
    page.map._heard("window", {"page": number})
    assert page.drawing._state["chosen"] == f"page:{number}"
    assert page.map._state["options"]["lit"] == [number]
    page.drawing._heard("chosen", "")
    assert page.map._state["options"]["lit"] == []
    page.close()
    with pytest.raises(BadInput, match="reload"):
        page.readings.tiles(page.reading.key)


def test_only_a_few_are_kept_and_a_stopped_one_ends(real):
    readings, found = Readings(), ended(real, "r0")
    begun = [readings.begin(found) for _ in range(KEPT + 1)]
    assert begun[0].is_gone and not begun[-1].is_gone
    for reading in begun:
        readings.end(reading)
    assert all(reading.over.wait(300) for reading in begun)


def test_its_script_is_one_module():
    assert "export default" in source("attention")
