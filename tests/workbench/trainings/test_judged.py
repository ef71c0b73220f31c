"""A claim over several trainings: its figure, its finding, and what is recorded of it."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from engine.core.paths import dataset
from tests.workbench.studies.test_trainings import SYSTEMS
from workbench.catalogue import study
from workbench.claim_text import several_line
from workbench.cli.main import main
from workbench.finding import Figure
from workbench.study import Claim, Outcome, Reported, Taught
from workbench.trainings import record
from workbench.trainings.judged import OverTrainings, judge_over, over, places
from workbench.trainings.trained_again import FACTS, _facts

GAIN = [0.10, 0.12, 0.11, 0.13, 0.09]
CLAIM = Claim(
    id="gain", sentence="It gains.", paper="it gains a tenth", grade="measured",
    check=lambda config, run, fast: Outcome("", "", True), broken={"workers": 1},
    reported=Reported(0.10, none=0.0, unit="%"), taught=Taught({"model": "square-queue-170k"}),
)  # fmt: skip


def judged(values, half=0.0) -> OverTrainings:
    outcomes = tuple(
        (seed, Outcome("", "", True, figure=Figure(v, v - half, v + half, "%", 100), needed=0.0))
        for seed, v in enumerate(values)
    )
    return OverTrainings("hogwild", CLAIM, False, 5, outcomes, CLAIM.taught)


def test_the_interval_over_trainings_is_students():
    figure = judged(GAIN).figure
    assert figure == pytest.approx(Figure.mean(GAIN, "%")) or figure == Figure.mean(GAIN, "%")
    assert (figure.n, figure.unit) == (5, "%")
    half = 2.776 * math.sqrt(0.00025 / 5)
    assert figure.high - figure.value == pytest.approx(half, rel=1e-3)


def test_what_problems_leave_open_widens_it():
    """All trainings see the same problems: that they agree says nothing of other problems."""
    alike = over([Figure(0.1, 0.04, 0.2, "%", 50)] * 5)
    assert (alike.low, alike.high) == pytest.approx((0.04, 0.2))
    both, of_trainings = judged(GAIN, 0.03).figure, judged(GAIN).figure
    assert both.high - both.value == pytest.approx(
        math.hypot(of_trainings.high - of_trainings.value, 0.03)
    )


@pytest.mark.parametrize(
    ("values", "finding", "holds"),
    [
        (GAIN, "reproduced", True),
        ([0.02, 0.03, 0.025, 0.03, 0.02], "weaker", True),
        ([0.10, -0.20, 0.15, -0.1, 0.05], "undecided", False),
        ([-0.10, -0.12, -0.11, -0.13, -0.09], "contrary", False),
        (GAIN[:4], "not tried", False),
    ],
)
def test_the_finding_is_computed_from_all_and_may_be_no(values, finding, holds):
    row = judged(values).row()
    assert (row["finding"], row["holds"]) == (finding, holds)
    assert [each["figure"]["value"] for each in row["trainings"]] == values
    assert json.loads(json.dumps(row)) == row


def test_what_a_check_asks_for_besides_its_figure_has_to_hold_of_every_training():
    """On par in accuracy, and faster: the figure says only how much faster."""
    found = judged(GAIN)
    (first, one), *others = found.judged
    split = replace(found, judged=((first, replace(one, holds=False)), *others))
    assert found.outcome.holds and split.lost_besides == (0,)
    row = split.row()
    assert (row["finding"], row["holds"]) == ("reproduced", False)
    alone = {"slug": "hogwild", "claim": "gain", "figure": None, "finding": "reproduced",
             "fast": False, "holds": True, "machine": "here"}  # fmt: skip
    told = record.told([row], [alone])
    assert "yet no yes, since what the check asks for besides its figure did not hold" in told
    assert "of each training: hogwild / gain (it says yes of 4 of the five)." in told
    said = several_line(split.claim, row)
    assert said.startswith("of 5: reproduced")
    assert "yet no yes: the check asks for more than this figure" in said
    assert "the rest of it held of 4 of 5 trainings; each" in said
    assert "the check says yes of each training" in several_line(found.claim, found.row())
    short = replace(one, holds=False, figure=Figure(-0.1, -0.2, 0.0, "%", 100))
    assert not replace(found, judged=((first, short), *others)).lost_besides


def keep(folder: Path, name: str, seed: int) -> None:
    place = folder / str(seed) / name
    place.mkdir(parents=True)
    (place / FACTS).write_text(json.dumps(_facts(name, seed, ())))


def test_each_training_is_judged_by_its_own_models(tmp_path):
    seen = []

    def check(config, run, fast):
        seen.append(config.model)
        return Outcome("", "", True, figure=Figure.exact(0.2, "%"), needed=0.0)

    claim = Claim(**{**vars(CLAIM), "check": check})
    chosen = study("hogwild")
    nothing = judge_over(chosen, claim, claim.taught, 5, tmp_path, {}, True)
    assert (nothing.judged, seen) == ((), []) and nothing.lacks == "1 of 5 trainings were had"
    for seed in (1, 2, 4):
        keep(tmp_path, "square-queue-170k", seed)
    (tmp_path / "4" / "square-queue-170k" / FACTS).write_text("{}")  # of another recipe
    assert list(places(claim.taught, range(5), tmp_path)) == [0, 1, 2]
    some = judge_over(chosen, claim, claim.taught, 5, tmp_path, {}, True)
    own = chosen.config.model
    assert seen == [own, *(str(tmp_path / f"{seed}/square-queue-170k") for seed in (1, 2))]
    assert some.row()["finding"] == "not tried" and some.lacks == "3 of 5 trainings were had"


def test_what_is_judged_over_trainings_heads_its_claim():
    alone = {"slug": "hogwild", "claim": "gain", "figure": None, "finding": "reproduced",
             "fast": False, "holds": True, "machine": "here"}  # fmt: skip
    wider = {**judged([-0.1, -0.12, -0.11, -0.13, -0.09]).row()}
    (row,) = record.headlines([alone], [wider])
    assert (row["finding"], row["holds"]) == ("contrary", True)
    assert record.headlines([alone], [{**wider, "fast": True}]) == [alone]
    few = judged(GAIN[:3]).row()
    assert record.headlines([alone], [few]) == [alone]
    told = record.told([wider, few], [alone])
    assert told.startswith("Claims about models taught here: 2. Judged over five trainings: 1.")
    assert "hogwild / gain (reproduced of the shipped training, contrary of five)" in told
    small = record.told([{**wider, "fast": True}], [alone])
    assert "at the small size alone, which heads no table: 1" in small and "none." in small
    assert record.told([], []) == ""


def test_what_is_judged_stays_where_nothing_can_be_judged_again(tmp_path):
    place, row, few = tmp_path / "kept.json", judged(GAIN).row(), judged(GAIN[:3]).row()
    record.record([few], place)
    assert json.loads(place.read_text())[0]["figure"] is None
    for rows in ([row], [few]):
        record.record(rows, place)
        assert json.loads(place.read_text())[0]["figure"] == row["figure"]


def test_the_command_says_what_it_lacks(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    kept = tmp_path / "trainings.json"
    asked = ["check", "hogwild", "--claim", "fewer-steps", "--trainings", "5", "--kept"]
    assert main([*asked, "--save", str(kept)]) == 0
    assert "not tried: 1 of 5 trainings were had" in capsys.readouterr().out
    (row,) = json.loads(kept.read_text())
    assert row["models"] == {"square-queue-170k": ""} and row["figure"] is None
    assert main([*asked, "--only", "stdlib-5m"]) == 2  # no model of that claim
    assert main(["check", "hogwild", "--kept"]) == 2
    assert main([*asked, "--save", str(dataset("findings.json"))]) == 2
    assert "holds no findings" in capsys.readouterr().err


def test_the_record_is_of_every_claim_about_taught_models_and_computed_from_its_trainings():
    """`workbench check --all --trainings 5 --kept --full --save datasets/trainings.json`."""
    rows = {(row["slug"], row["claim"]): row for row in record.recorded()}
    asked = [(slug, claim) for slug in SYSTEMS for claim in study(slug).claims]
    assert set(rows) == {(slug, claim.id) for slug, claim in asked if claim.taught}
    for (slug, id), row in rows.items():
        claim = study(slug).claim(id)
        assert claim.taught is not None
        assert row["reported"] == (claim.reported.row() if claim.reported else None)
        outcomes = tuple(
            (each["seed"], Outcome("", "", each["holds"], figure=Figure.of_row(each["figure"]),
                                   needed=row["needed"]))
            for each in row["trainings"]
        )  # fmt: skip
        again = claim.taught.only([*row["models"]])
        assert set(again.names) | set(row["once"]) == set(claim.taught.names)
        whole = OverTrainings(slug, claim, row["fast"], row["wanted"], outcomes, again).row()
        for name in ("models", "once", "figure", "finding", "holds"):
            assert whole[name] == row[name], f"{slug} / {id}: {name}"
