"""Claims beside a study: what waits is stopped; a setting that a claim fails under is named."""

import threading

from engine.core.config import update
from tests.workbench.toy import TOY
from workbench.claim import Claim, Outcome
from workbench.pages.verdicts.claims import Claims
from workbench.pages.verdicts.verdicts import Verdicts
from workbench.study import Study

TRIES = 2000  # of 5 milliseconds


def fewer(config, run, fast):
    run(config)
    return Outcome("at most 5", str(config.count), config.count <= 5)


def study(check, count=1):
    claims = [
        Claim(f"c{n}", "It counts to five.", "it does", "exact", check, {}, finding="reproduced")
        for n in range(count)
    ]
    return Study("toy", TOY.driver, TOY.config, TOY.views, tuple(claims), "", (), "")


def settled(claims):
    pause = threading.Event()
    for _ in range(TRIES):
        if not claims.verdicts._busy:
            break
        pause.wait(0.005)
    claims.refresh()
    return claims.panel.cards


def shown(of, config):
    return Claims(of, Verdicts(of), lambda: config)


def test_a_claim_that_fails_under_other_knobs_names_them_and_the_way_back():
    of = study(fewer)
    claims = shown(of, update(of.config, {"count": 7}))
    claims.ask({"id": "c0"})
    (card,) = settled(claims)
    assert (card["kind"], card["word"]) == ("open", "✕ not under your knobs")
    assert ["Under", "count = 7"] in card["facts"] and card["own"]
    claims.ask({"id": "c0", "own": True})
    (card,) = settled(claims)
    assert card["word"] == "✓ holds here" and not card["own"]
    assert "other knobs" in dict(card["facts"])["Note"]


def test_what_waits_is_stopped_and_what_is_under_way_goes_no_further_than_its_next_run():
    begun, go = threading.Event(), threading.Event()

    def slow(config, run, fast):
        begun.set()
        go.wait(30)
        return fewer(config, run, fast)

    of = study(slow, count=3)
    claims = shown(of, of.config)
    claims.ask({"id": ""})
    assert begun.wait(30)
    claims.refresh()
    assert claims.panel.left == 3
    claims.ask({"stop": True})
    go.set()
    assert [card["word"] for card in settled(claims)] == ["not checked yet"] * 3
    assert claims.panel.left == 0


def test_while_a_claim_is_judged_again_its_old_figures_say_so_and_the_time_left_is_told():
    go = threading.Event()
    go.set()

    def waited(config, run, fast):
        go.wait(30)
        return fewer(config, run, fast)

    of = study(waited, count=3)
    now = [of.config]
    claims = Claims(of, Verdicts(of), lambda: now[0])
    assert claims.verdicts.pace() == ""
    claims.ask({"id": ""})
    assert all(not card["pending"] for card in settled(claims))
    claims.verdicts._took = {(f"c{n}", True): 40.0 for n in range(3)}  # as if on a slow machine
    go.clear()
    now[0] = update(of.config, {"count": 7})
    claims.ask({"id": ""})
    claims.refresh()
    for card in claims.panel.cards:
        assert card["pending"] and "the check before" in dict(card["facts"])["Note"]
    assert claims.panel.pace in ("2 min left", "1.98 min left")  # three of forty seconds each
    claims.ask({"stop": True})
    go.set()
    for card in settled(claims):  # what was judged before stands, for the knobs of then
        assert card["word"] == "✓ holds here" and "other knobs" in dict(card["facts"])["Note"]


def test_a_first_check_tells_how_long_it_has_taken():
    begun, go = threading.Event(), threading.Event()

    def slow(config, run, fast):
        begun.set()
        go.wait(30)
        return fewer(config, run, fast)

    of = study(slow)
    claims = shown(of, of.config)
    claims.ask({"id": ""})
    assert begun.wait(30)
    assert claims.verdicts.pace().endswith("so far")
    go.set()
    settled(claims)
