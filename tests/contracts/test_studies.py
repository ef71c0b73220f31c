"""Every study, found by folder: it is told, runs, is seen, and its claims can come out false."""

from functools import cache, partial
from pathlib import Path
from time import process_time

import pytest

from engine.core.config import from_dict, knobs, to_dict, update
from engine.core.events import Closed, Opened
from engine.core.log import Log
from tests.contracts.dear import DEAR
from tests.outcomes import Outcomes
from tests.runs import Runs
from tests.spent import children
from tests.turn import ROOT, TURNS, due, turn_of_this_commit
from widgets.fold import History
from widgets.view import views
from workbench.catalogue import catalogue, entry, study, study_files
from workbench.finding import FINDINGS, Figure
from workbench.findings_table import recorded
from workbench.study import GRADES, Claim, Outcome, Study, here

SLUGS = sorted(study_files())
# Of the run that views fold, where a study's own takes seconds; with --full it is the study's own.
SHORTER = {
    "damov": {"scale": 32},  # as its claims have it
    "fp8-vs-int8": {"windows": 4},
    "noloco": {"steps": 16},
    "one-bit-adam": {"steps": 24, "method.exact": 8},
    "shiftaddllm": {"windows": 4, "seen": 256},
    "stream-cpp": {"length": 1 << 20, "repeats": 3},
    "streaming-diloco": {"steps": 24},
}
THIRD = 3  # of a study's claims, whose break is tried
PERIOD = TURNS * THIRD * len(DEAR)
LONG = 60.0  # CPU seconds of a claim's breaks at full size, after which others are tried in small
TURN = turn_of_this_commit() % PERIOD  # which claims are asked, and broken, without --full
RECORDED = {(row["slug"], row["claim"]): row for row in recorded()}
CLAIMS = [(slug, claim.id) for slug in SLUGS for claim in study(slug).claims]


@pytest.fixture(scope="module", params=SLUGS)
def chosen(request) -> Study:
    return study(request.param)


@pytest.fixture(scope="module")
def log(chosen, runs, full) -> Log:
    """One run of the study as it stands."""
    return runs.of(chosen)(chosen.configured({} if full else SHORTER.get(chosen.slug, {})))


def test_it_is_a_row_of_the_catalogue_under_its_own_name(chosen):
    row = entry(chosen.slug)
    assert row.built
    assert row.module.split(".")[-2] == row.family
    assert row.module.split(".")[-1] == chosen.slug.replace("-", "_")


def test_it_is_told(chosen):
    assert len(chosen.about) > 100
    assert len(chosen.limits) > 50
    assert len(chosen.tries) == 3
    assert 1 <= len(chosen.views) <= 4
    assert chosen.claims
    assert len({claim.id for claim in chosen.claims}) == len(chosen.claims)


def test_its_config_reads_back_and_every_knob_says_what_it_is(chosen):
    assert from_dict(type(chosen.config), to_dict(chosen.config)) == chosen.config
    assert all(knob.doc for knob in knobs(chosen.config))


def test_presets_and_tries_change_something(chosen):
    changes = [*chosen.presets.values(), *(changed for _, changed in chosen.tries)]
    for turned in changes:
        assert chosen.configured(turned) != chosen.config
    for name in chosen.presets:
        assert chosen.configured({}, name) == update(chosen.config, chosen.presets[name])


def test_its_views_exist_and_fold_its_run(chosen, log):
    assert isinstance(log[0], Opened)
    assert isinstance(log[-1], Closed)
    assert log.closed.reason == "finished"
    for name in chosen.views:
        history = History(log, views()[name].fold())
        whole = history.latest().frame()
        assert not whole.get("empty"), f"{name} has nothing to show of this run"
        history.at(log.duration / 2).frame()


def test_its_run_never_goes_back_in_time(log):
    times = [event.time for event in log]
    assert times == sorted(times)


def test_no_claim_is_known_by_another_grade(chosen):
    for claim in chosen.claims:
        assert claim.grade in GRADES
        assert claim.sentence.endswith(".")
        assert claim.paper
        broken = any(each.mechanism for each in claim.breaks)
        assert broken, f"{claim.id}: a claim whose mechanism nothing can break says nothing"
        for each in claim.breaks:
            assert each.changes
            assert update(chosen.config, each.changes) is not None


def test_findings_are_known_and_told(chosen):
    for claim in chosen.claims:
        for stated in (claim.finding, claim.quick or claim.finding):
            assert stated in FINDINGS
        if claim.reported is not None and claim.finding != "reproduced":
            assert claim.why, f"{claim.id}: say why it came out {claim.finding}"
        if claim.fails:
            assert claim.why, f"{claim.id}: say why its check says no"
        for size in claim.fails:
            assert claim.stated(size == "small") != "reproduced", f"{claim.id}: asks for too much"


def test_its_sweeps_have_points(chosen):
    assert len({each.plot.title for each in chosen.sweeps}) == len(chosen.sweeps)
    for each in chosen.sweeps:
        assert list(each.points(chosen.config))


def is_due(slug: str, turn: int) -> bool:
    """Whether it is a study's turn, or its file has changed."""
    return due(SLUGS.index(slug), file_of(slug), turn=turn)


def file_of(slug: str) -> Path:
    """Where a study is written."""
    return ROOT.joinpath(*study_files()[slug].split(".")).with_suffix(".py")


def asked(slug: str, id: str, turn: int = TURN) -> bool:
    """Whether a claim is asked without --full: exact ones each time, the others of a study at its
    turn, all of them, since checks of one study share runs."""
    return study(slug).claim(id).grade == "exact" or is_due(slug, turn)


def tried(chosen: Study, turn: int = TURN) -> list[str]:
    """The claims of a study whose break is tried without --full: a third of those that are asked,
    the dear less often; other turns try others."""
    dear = {id for slug, id in DEAR if slug == chosen.slug}
    cheap = [e for e in chosen.claims if e.id not in dear and e.breaks_at(fast=True)]
    exact = [e.id for e in cheap if e.grade == "exact"]
    others = [e.id for e in cheap if e.grade != "exact"] if is_due(chosen.slug, turn) else []
    slug, one = DEAR[turn % len(DEAR)]
    return [*_third(exact, turn), *_third(others, turn // TURNS)] + [one] * (slug == chosen.slug)


def _third(ids: list[str], turn: int) -> list[str]:
    apart = max(1, min(THIRD, len(ids)))
    return ids[turn % apart :: apart]


def told(pair: tuple[str, str]) -> str:
    """A claim's name, with the turn at which its break is tried."""
    slug, id = pair
    return "-".join([slug, id, *[f"turn{TURN}"] * (id in tried(study(slug)))])


@pytest.fixture(scope="module", params=CLAIMS, ids=told)
def claimed(request) -> tuple[Study, Claim]:
    """A study and one of its claims; its tests follow each other."""
    slug, id = request.param
    return study(slug), study(slug).claim(id)


def outcome(claimed, runs: Runs, outcomes: Outcomes, changes, full: bool):
    chosen, claim = claimed
    if claim.timed and not full:
        pytest.skip("a speed of this machine: told by `workbench check`, asserted with --full")
    run_config = chosen.run_config() if claim.timed else runs.of(chosen)
    seen = outcomes.of(chosen.slug, claim, update(chosen.config, changes), run_config, not full)
    assert claim.bears(seen), f"a yes to more than its figure shows: {seen}"
    return seen


def test_the_claim_comes_out_as_stated_and_recorded(claimed, runs, outcomes, full):
    """Yes, or no where it states that it fails; a speed as it is recorded of this machine."""
    chosen, claim = claimed
    if not full and not asked(chosen.slug, claim.id):
        pytest.skip(f"turn {TURN % TURNS} of {TURNS} asks others; --full asks each")
    row = RECORDED.get((chosen.slug, claim.id)) if full else None
    if claim.timed and row is not None and row["machine"] != here():
        pytest.skip(f"a speed as recorded on {row['machine']}: told by `workbench check`")
    seen = outcome(claimed, runs, outcomes, {}, full)
    timed = claim.timed and row is not None and not row["fast"]
    holds = row["holds"] if timed else claim.comes_out(fast=not full)
    assert seen.holds == holds, f"expected {seen.expected}; found {seen.measured}"
    for name in (*claim.held.rivals, *claim.held.workloads) if full and claim.held else ():
        assert name in seen.measured, f"held against {name}, and says nothing of it"
    if not claim.timed:  # a speed's interval hangs on what else the machine does
        assert claim.came_to(seen) == claim.stated(fast=not full), seen.figure


def test_the_same_check_says_no_where_it_is_broken(claimed, runs, outcomes, full):
    """Each break with --full; else one of a third of the claims, of the mechanism where there is.
    Where it says no anyhow, a break has to change what it comes to."""
    chosen, claim = claimed
    if not full and claim.id not in tried(chosen):
        pytest.skip(f"turn {TURN} of {PERIOD} tries others; --full tries each")
    began = process_time() + children()
    for each in claim.breaks_at(not full)[: None if full else 1]:
        long = process_time() + children() - began > LONG
        at_full = full and not (long and each.small and not claim.timed)
        whole = cache(partial(outcome, claimed, runs, outcomes, {}, at_full))
        seen = outcome(claimed, runs, outcomes, each.changes, at_full)
        assert claim.notices(each, seen, whole, not at_full), (
            f"under {dict(each.changes)}: {seen.measured}"
        )


def test_each_break_is_tried_at_some_turn_and_of_exact_claims_one_each_time(chosen):
    turns = [tried(chosen, turn) for turn in range(TURN, TURN + max(len(DEAR), TURNS * THIRD))]
    told = {each.id: each.grade for each in chosen.claims if each.breaks_at(fast=True)}
    assert {id for ids in turns for id in ids} == told.keys()
    exact = {id for id, grade in told.items() if grade == "exact" and (chosen.slug, id) not in DEAR}
    assert all(exact & set(ids) for ids in turns) or not exact
    assert set(DEAR) <= set(CLAIMS)


def test_each_claim_is_asked_once_in_so_many_commits_and_the_exact_each_time(monkeypatch):
    monkeypatch.setattr("tests.turn.changed", frozenset)
    for slug, id in CLAIMS:
        times = sum(asked(slug, id, TURN + turn) for turn in range(TURNS))
        assert times == (TURNS if study(slug).claim(id).grade == "exact" else 1)


def test_a_study_that_has_changed_does_not_wait_for_its_turn(monkeypatch):
    place = ROOT / "workbench" / "studies" / "serving" / "batchllm.py"
    monkeypatch.setattr("tests.turn.changed", lambda: frozenset({place}))
    assert place.exists()
    assert all(
        asked(*pair, turn) for turn in range(TURNS) for pair in CLAIMS if pair[0] == "batchllm"
    )


def test_recorded_findings_are_those_that_claims_state():
    """`workbench check SLUG --save datasets/findings.json` records them anew."""
    for row in recorded():
        claim = study(row["slug"]).claim(row["claim"])
        reported = claim.reported.row() if claim.reported else None
        stated = (claim.grade, claim.timed, reported)
        assert (row["grade"], row["timed"], row["reported"]) == stated, row["slug"]
        figure = Figure.of_row(row["figure"]) if row["figure"] else None
        seen = Outcome("", "", row["holds"], figure=figure, needed=row["needed"])
        assert claim.bears(seen), f"{row['slug']}: {claim.id}"
        if not claim.timed:
            assert row["finding"] == claim.stated(row["fast"]), f"{row['slug']}: {claim.id}"
            assert row["holds"] == claim.comes_out(row["fast"]), f"{row['slug']}: {claim.id}"


def test_there_are_studies_and_the_catalogue_knows_them():
    assert {row.slug for row in catalogue() if row.built} == set(SLUGS)
    assert {"flover", "batchllm"} <= set(SLUGS)
