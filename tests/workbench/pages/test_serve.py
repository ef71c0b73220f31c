"""The serve page: what is timed there stands under the roofs that were just measured."""

from engine.core.config import update
from engine.core.run import Run
from engine.hardware.device import device
from workbench.pages import serve


def test_roofs_of_a_busy_machine_are_drawn_and_said_to_be_in_doubt(monkeypatch):
    busy = device("h100-sxm").model_copy(update={"caution": "measured while busy"})
    monkeypatch.setattr(serve, "measure", lambda say: busy)  # and kept in no file
    few = {"model": "agreement-100k", "workload.count": 1, "profile_every": 1}
    facts = Run.execute(serve.serve, update(serve.start(), few)).log.opened.facts
    assert facts["doubt"] == "roofs measured while busy"
    assert {roof["device"] for roof in facts["roofs"]} == {busy.slug}
