"""Threads on a study's page: a person pauses, forks, speaks and kills with the mouse, and the log,
played again, says the same."""

from collections import deque

import pytest

from engine.core.config import from_dict
from engine.core.events import Branch, Span, Token, Told
from engine.core.file import load
from engine.core.log import Log
from engine.core.run import Live, Stopped
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.run import run

pytestmark = pytest.mark.ui
STUDY = "/study?slug=hogwild&paused=true&workers=2&layout=combined&sampling.ignore_eos=true"
LANES, CELLS = ".pw-lanes canvas", ".pw-cells canvas"


def told(log: Log) -> dict[int, list[dict]]:
    """What a person said, by how many steps had been done."""
    steps, found = 0, {}
    for event in log:
        steps += isinstance(event, Span) and event.name == "step"
        if isinstance(event, Told):
            found.setdefault(steps, []).append(event.command)
    return found


class Again(Live):
    """Says at each step what was said there before."""

    def __init__(self, said: dict[int, list[dict]], steps: int) -> None:
        super().__init__(Log())
        self.said, self.steps, self.polls = said, steps, 0

    def poll(self, now: float) -> list[dict]:
        if self.polls == self.steps:
            raise Stopped
        self.inbox = deque(self.said.get(self.polls, ()))
        self.polls += 1
        return super().poll(now)


def says(log: Log) -> dict[str, str]:
    said: dict[str, str] = {}
    for token in log.of(Token):
        said[token.thread] = said.get(token.thread, "") + token.text
    return said


def ends(log: Log) -> dict[str, str]:
    return {branch.thread: branch.state for branch in log.of(Branch)}


def press(seen, name: str) -> None:
    """Press a button of the view and wait until the picture shows what came of it."""
    button = seen.page.get_by_role("button", name=name, exact=True)
    button.hover()  # off the lanes: nothing is lit
    before = seen.settled()
    button.click()
    seen.changed(before)


def read_by_others(page) -> None:
    """In the cache view a worker's page is read by the other worker, and that saves bytes."""
    cells = page.locator(CELLS)
    cells.scroll_into_view_if_needed()
    page.get_by_text("saved by sharing", exact=True).last.wait_for()
    cells.hover(position={"x": 20 + 3 * 40, "y": 20})  # the prompt has three pages before it
    said = page.locator(".pw-tip", has_text="Page 3: shared by 2")
    said.wait_for()
    assert "alice, bob" in said.inner_text() and "of alice" in said.inner_text()
    saved = page.locator(".pw-figures div", has_text="saved by sharing").last
    assert saved.locator(".pw-value").inner_text().endswith("iB")


def test_threads_are_paused_forked_spoken_to_and_killed_by_the_mouse(visit, tmp_path):
    seen = visit()
    page = seen.open(STUDY)
    fork = page.get_by_role("button", name="Fork here", exact=True)
    fork.wait_for()
    for _ in range(3):
        page.get_by_role("button", name="One step on (→)").click()
    seen.settled()
    read_by_others(page)
    lanes = page.locator(LANES)
    lanes.click(position={"x": 60, "y": 38})  # alice
    press(seen, "Fork here")
    page.get_by_label("What to say to the pinned thread").fill("and then ")
    press(seen, "Say")
    lanes.click(position={"x": 60, "y": 38 + 2 * 38})  # bob: a child stands under its parent
    press(seen, "Kill")
    page.screenshot(path=tmp_path / "threads.png")
    page.get_by_role("button", name="Stop the run").click()
    fork.wait_for(state="detached")
    page.get_by_role("button", name="Share").click()
    with page.expect_download() as got:
        page.get_by_role("menuitem", name="Run file").click()
    log = load(got.value.path())
    assert seen.outside == [] and seen.faults == []
    commands = [command for _, said in sorted(told(log).items()) for command in said]
    assert commands == [{"fork": "alice"}, {"say": ["alice", "and then "]}, {"kill": "bob"}]
    assert ends(log) == {"alice": "running", "alice.1": "running", "bob": "pruned"}
    steps = sum(span.name == "step" for span in log.of(Span))
    again = Again(told(log), steps)
    with pytest.raises(Stopped):
        run(from_dict(ReasoningConfig, log.opened.config), again)
    assert says(again.log) == says(log)
    assert ends(again.log) == ends(log)
