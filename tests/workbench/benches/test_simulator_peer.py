"""The simulator's bench beside a peer: what is not there is said, what fails too."""

from subprocess import CompletedProcess

from workbench.benches import _inference_lab as inference_lab
from workbench.benches import simulator


def test_without_node_it_is_skipped_and_said_so(monkeypatch):
    monkeypatch.setattr(inference_lab.shutil, "which", lambda name: None)
    said = []
    assert simulator._peer(10, said.append) == [] and "node is not installed" in said[0]


def test_a_peer_that_fails_is_a_line(monkeypatch):
    ended = {1: "", 2: "TypeError: no such field"}

    def run(command, **given):
        number = 2 if "input" in given else 1
        return CompletedProcess(command, number == 2, "", ended[number])

    monkeypatch.setattr(inference_lab.shutil, "which", lambda name: "/node")
    monkeypatch.setattr(inference_lab.subprocess, "run", run)
    said = []
    assert simulator._peer(10, said.append) == [] and "no such field" in said[-1]


def test_what_it_tells_is_a_row(monkeypatch):
    told = '{"seconds": 2.0, "requests": 10, "prompt": 5.0, "answer": 3.0}'
    monkeypatch.setattr(inference_lab.shutil, "which", lambda name: "/node")
    monkeypatch.setattr(
        inference_lab.subprocess, "run", lambda *given, **more: CompletedProcess(given, 0, told, "")
    )
    (row,) = simulator._peer(10, lambda text: None)
    assert row["per_second"] == 5.0
    assert simulator.table([row])[1][:4] == ("inference-lab", "5", "", "10")


def test_many_requests_tell_what_memory_they_take_and_are_asked_for_no_speed(monkeypatch):
    monkeypatch.setattr(simulator, "MANY", 100)
    row = simulator._measure(1, 120)
    assert row["holds"] and row["asked"] == 0 and row["peak"] > 1e6
    assert abs(row["held"]) < 1e6  # of each: a request's row and its pages
    *_, held, peak = simulator.table([row])[1]
    assert held.endswith(" B") and peak.endswith(" MB")
    assert simulator._asked(1000, 60_000) == 1000
