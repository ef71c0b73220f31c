"""Fleet designs searched under an objective: who wins, what binds, flags, and a way to stop."""

import json
import threading
from contextlib import closing

import pytest

from engine.core.config import from_dict, update
from engine.core.errors import BadInput
from engine.distributed.fleet import Fleet, Processes, answer, called, done
from engine.fleet.config import FleetConfig
from workbench.catalogue import study
from workbench.cli.main import main
from workbench.fleet_search.asked import FleetSearch
from workbench.fleet_search.designs import Design, blocks, fleet_of, shapes, sizes, variants
from workbench.fleet_search.figure import pareto
from workbench.fleet_search.flags import launches
from workbench.fleet_search.play import WORK, Row, piece, play
from workbench.fleet_search.search import Searched, search
from workbench.fleet_search.told import binds, cells, notes, verdict
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.sizing.design import DesignPage

FEW = {
    "devices": 2, "workload.count": 24, "workload.rate": 40.0, "tried.finalists": 1,
    "tried.chunks": False, "tried.again": 1,
}  # fmt: skip
ASKED = update(FleetSearch(), FEW)


class Here(Fleet):
    """Pieces one after another in this process."""

    def run(self, work, pieces):
        for number, each in enumerate(pieces):
            yield done(number, answer(work, json.dumps(each)))


def searched(asked: FleetSearch) -> Searched:
    return list(search(asked, Here()))[-1]


@pytest.fixture(scope="module")
def found() -> Searched:
    return searched(ASKED)


def test_the_cheapest_design_that_keeps_the_objective_wins(found):
    played = {row.design: row for row in found.rows}
    assert len(played) == len(found.rows) == found.total - 3  # one other draw, both paces
    assert {Design(1, 1), Design(1, 2), Design(1, 2, 1), Design(2, 1)} <= set(played)
    good = [row for row in found.rows if row.meets(ASKED.slo)]
    costs = [found.cost(row) for row in good]
    assert found.winner in good and found.cost(found.winner) == min(costs)
    for row in good:
        assert row.figures["ttft"] <= 1.0 and row.figures["tpot"] <= 0.05
        assert row.figures["finished"] == 24
    assert len(found.again) == 1 and found.again[0].figures != found.winner.figures
    assert "; of 1 other draw it keeps it under " in verdict(found)
    assert found.winner.design.words in verdict(found)


def test_the_winner_is_played_with_steps_as_wrong_as_the_cost_model_may_be(found):
    short, long = found.paces
    assert short < 1 < long
    sooner, later = (row.figures["tpot"] for row in found.paced)
    assert sooner < found.winner.figures["tpot"] < later
    assert f"steps {short:.2f} to {long:.2f} times as long as modelled" in verdict(found)


def test_nobody_on_the_front_is_beaten_and_all_others_are(found):
    front = found.front()
    assert found.winner in front

    def beats(a, b):
        better = [found.cost(a) <= found.cost(b), a.figures["watts"] <= b.figures["watts"],
                  a.figures["goodput"] >= b.figures["goodput"] * 0.98]  # fmt: skip
        return all(better)

    good = [row for row in found.rows if row.meets(ASKED.slo)]
    assert all(any(beats(one, row) for one in front) for row in good)
    strictly = [(a, b) for a in front for b in front if a is not b and beats(a, b)]
    for a, b in strictly:  # only by a gain of goodput above the hundredth that counts as none
        assert b.figures["goodput"] > a.figures["goodput"]


def test_a_design_played_again_is_the_same_and_opens_as_a_run(found):
    row = found.winner
    config = fleet_of(ASKED, row.design)
    assert play(piece(ASKED, config)) == row.figures
    start = study("splitwise").config
    opened = config_of(start, query_of(start, config))
    assert opened == config and isinstance(opened, FleetConfig)
    made = pareto(found, {0: "./study?slug=splitwise"})
    links = [link for each in made.renderers for link in each.data_source.data.get("link", [])]
    assert "./study?slug=splitwise" in links and len(links) == len(found.rows)
    assert len(cells(found, row)) == 8 and notes(found)[-1].startswith("modelled")


def test_what_binds_is_said_where_nothing_keeps_it():
    few = {"devices": 1, "tried.routers": False, "workload.count": 12}
    device = searched(update(ASKED, {**few, "slo.ttft": 0.001}))
    assert device.winner is None and "by the first token" in verdict(device)
    assert "served one by one on 1 tensor rank miss it too" in verdict(device)
    crowd = {"workload.rate": 2000.0, "workload.count": 60, "slo.ttft": 0.3}
    many = searched(update(ASKED, {**few, **crowd}))
    assert many.winner is None and "one by one on 1 tensor rank keep it" in verdict(many)
    assert "waiting for a place" in verdict(many) or "computing the prompt" in verdict(many)
    assert many.alone.figures["ttft"] < many.rows[0].figures["ttft"]


def test_what_does_not_fit_is_left_out_with_its_reason():
    big = update(FleetSearch(), {"model": "llama-3.1-70b", "devices": 4})
    designs, left_out = shapes(big)
    assert 4 in {design.tensor for design in designs} and 1 not in {d.tensor for d in designs}
    assert "GB of weights" in left_out["1 tensor rank"]
    with pytest.raises(BadInput, match="GB of weights on each of 1"):
        shapes(update(big, {"devices": 1}))
    with pytest.raises(BadInput, match="price"):
        shapes(update(big, {"budget": 10.0}))
    with pytest.raises(BadInput, match="below the price"):
        shapes(update(big, {"budget": 1.0, "price": 2.0}))
    assert update(big, {"budget": 9.0, "price": 3.0}).most == 3


def test_sizes_grow_by_a_third_or_a_half():
    assert sizes(1) == [1] and sizes(8) == [1, 2, 3, 4, 6, 8] and sizes(7)[-2:] == [6, 7]
    one = Design(1, 4)
    assert one not in variants(ASKED, one) and len(variants(ASKED, one)) == 2
    assert variants(ASKED, Design(1, 1)) == []


def test_more_ranks_leave_more_room_for_the_cache():
    assert blocks(ASKED, Design(2, 1)) > 2 * blocks(ASKED, Design(1, 1))


def test_flags_start_pools_and_routers():
    apart = launches(ASKED, Design(2, 8, 2, "prefix_aware", 8192))
    vllm, sglang = (" ".join(apart[name]) for name in ("vLLM", "SGLang"))
    for text in ("--tensor-parallel-size 2", "--max-num-batched-tokens 8192", "NixlConnector",
                 "--prefill http://prefill-1:8000", "--decode http://decode-3:8000 … (to decode-5)",
                 "--policy cache_aware"):  # fmt: skip
        assert text in vllm, text
    for text in ("--tp-size 2", "--chunked-prefill-size 8192", "prefill http://prefill-0:8000 8998",
                 "--disaggregation-mode prefill", "--disaggregation-mode decode"):  # fmt: skip
        assert text in sglang, text
    together = launches(ASKED, Design(1, 2))["vLLM"]
    assert "--worker-urls http://replica-0:8000 http://replica-1:8000" in together[1]
    assert len(launches(ASKED, Design(1, 1))["SGLang"]) == 1


def test_late_and_slow_requests_say_what_helps():
    told = binds(late=3, late_queueing=0.9, slow=1)
    assert "waiting for a place" in told and "next ones" in told


def test_a_stopped_search_ends_what_is_under_way():
    stop = threading.Event()
    with closing(search(ASKED, Processes(2, 60.0, stop))) as steps:
        assert next(steps).rows == []
        stop.set()
        assert all(found.rows == [] for found in steps)


@pytest.fixture
def here(monkeypatch):
    """Designs are played in this process."""
    for module in ("engine.distributed.fleet", "workbench.pages.sizing.design"):
        monkeypatch.setattr(f"{module}.Processes", lambda *_: Here())


def test_the_command_tells_table_flags_and_codes(here, tmp_path, capsys):
    file = tmp_path / "asked.toml"
    load = '[workload]\nkind = "poisson"\ncount = 8\nrate = 20.0\n'
    file.write_text(f"devices = 1\nprice = 2.5\n{load}")
    few = ("--set", "tried.chunks=false", "--set", "tried.again=0")
    assert main(["design", str(file), *few]) == 0
    out = capsys.readouterr().out
    assert "keeps it at the least cost, $" in out and "vllm serve llama-3.1-8b" in out
    assert main(["design", str(file), *few, "--json", "--set", "slo.tpot=0.001"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["winner"] is None and told["grade"] == "modelled"
    assert told["designs"][0]["devices"] == 1 and told["commands"] == {}
    assert main(["design", "--set", "devices=0"]) == 2


def test_a_trace_that_cannot_be_read_is_told_before_workers_start(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("engine.distributed.fleet.Processes", None)  # not even made
    assert main(["design", "--trace", str(tmp_path / "none.csv")]) == 2
    assert "no such file" in capsys.readouterr().err
    lines = "TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:17:03,374,44"
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join((*lines, "2023-11-16 18:17:04,much,7", lines[1])))
    assert main(["design", "--trace", str(bad)]) == 2
    assert "line 3" in capsys.readouterr().err
    lenient = ("design", "--trace", str(bad), "--lenient", "--knobs")
    assert main([*lenient]) == 0 and "left out 1 line" in capsys.readouterr().err


def test_a_search_stopped_before_anything_is_known_is_no_bad_input(monkeypatch, capsys):
    def stopped(*_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("workbench.fleet_search.search.search", stopped)
    assert main(["design", "--set", "devices=2"]) == 130
    assert "before any design was played" in capsys.readouterr().err


def test_the_page_shows_what_has_come_and_says_what_is_wrong(here):
    page = DesignPage()
    page.config = update(ASKED, {"devices": 1, "tried.again": 0, "workload.count": 8})
    page.search()
    page.playing.thread.join()
    page.look()
    assert "3 of 3 played" in page.note.object and page.picture.visible
    for text in ("open its run", "study?slug=splitwise", "vllm serve", "keeps it at the least"):
        assert text in page.table.object, text
    assert "record_every" not in page.table.object  # a run that is opened tells of every request
    page.config = update(page.config, {"model": "llama-3.1-405b"})
    page.search()
    page.playing.thread.join()
    page.look()
    assert "GB of weights" in page.note.object and not page.picture.visible
    page.halt()
    assert page.playing.stopped


def test_a_piece_is_plain_values():
    given = json.loads(json.dumps(piece(ASKED, fleet_of(ASKED, Design(1, 2, 1)))))
    assert from_dict(FleetConfig, given["fleet"]) == fleet_of(ASKED, Design(1, 2, 1))
    assert called(WORK) is play and Row(Design(1, 1), failed="no").meets(ASKED.slo) is False
