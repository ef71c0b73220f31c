"""The control panel: every type of knob, bounds, policies, chance, and what is copied from it."""

import random
import shlex

import pytest

from engine.core.config import Knob, from_dict, knobs, to_dict, update
from engine.core.errors import BadInput
from tests.widgets.made_config import Made, Owned
from tests.widgets.orders.weighted import Weighted
from widgets.knobs.config_text import as_cli, as_python, as_study, changes
from widgets.knobs.controls import Control
from widgets.knobs.knobs import Knobs


def panel(config=None, **more):
    told = []
    return Knobs(Owned(config or Made(), told.append), **more), told


def turn(made, path, left_at):
    """What the browser says when a person left the knob's field at this."""
    made.heard({"path": path, "field": left_at})


def facts(made, path):
    rows = [row for group in made.panel.layout for row in group["knobs"]]
    return next((row for row in rows if row["path"] == path), None)


WATCHED = ("layout", "shown", "says", "cli", "python")
TURNS = [
    ("workers", "7", 7),
    ("rate", "0.25", 0.25),
    ("pages", "1,000", 1000),
    ("share", "1", 1.0),
    ("chunked", False, False),
    ("mode", "slow", "slow"),
    ("name", "other", "other"),
    ("deadline", "2.5", 2.5),
]


@pytest.mark.parametrize(("path", "left_at", "value"), TURNS)
def test_what_a_person_leaves_a_control_at_is_what_the_config_holds(path, left_at, value):
    made, told = panel()
    turn(made, path, left_at)
    assert to_dict(told[-1])[path] == value
    assert to_dict(told[-1]) == {**to_dict(Made()), path: value}
    assert made.message == ""


@pytest.mark.parametrize("knob", [k for k in knobs(Made()) if k.type in ("int", "float")])
def test_a_slider_reaches_both_bounds_and_never_leaves_them(knob):
    made = Control(knob)
    if not made.slides:
        return
    low, high = made.ends
    assert [made.read({"place": end}) for end in (high, low)] == [knob.high, knob.low]
    places = [low + (high - low) * part / 20 for part in range(1, 20)]
    found = [made.read({"place": place}) for place in places]
    assert all(knob.low <= value <= knob.high for value in found)
    assert all(type(value) is (int if knob.type == "int" else float) for value in found)


@pytest.mark.parametrize("place", ["far", None, float("nan"), float("inf"), 10**400, [1]])
def test_a_place_that_is_none_turns_nothing(place):
    made, told = panel()
    made.heard({"path": "workers", "place": place})
    assert made.owner.config == Made() and told == []


def test_a_slider_and_its_field_show_the_same_value():
    made, told = panel()
    made.heard({"path": "workers", "place": 9})
    assert made.panel.shown["workers"] == {"field": "9", "place": 9, "was": "4"}
    turn(made, "workers", "3")
    assert made.panel.shown["workers"] == {"field": "3", "place": 3, "was": "4"}
    assert [config.workers for config in told] == [9, 3]


@pytest.mark.parametrize("told", [{}, {"path": "nobody", "field": 1}, {"do": "harm"}, {"path": []}])
def test_what_no_control_says_is_ignored(told):
    made, heard = panel()
    made.heard({key: value for key, value in told.items() if value != []})
    assert heard == [] and made.message == ""


@pytest.mark.parametrize("left_at", ["17", "0", "two", "", "1.5"])
def test_a_value_that_does_not_fit_is_answered_in_one_line_and_the_last_config_stays(left_at):
    made, told = panel()
    turn(made, "workers", left_at)
    assert told == []
    assert made.owner.config == Made()
    assert "workers" in made.message and "\n" not in made.message
    turn(made, "workers", "5")
    assert made.message == ""
    assert told[-1].workers == 5


def test_an_emptied_optional_number_is_none_again():
    made, told = panel(update(Made(), {"deadline": 3.0}))
    turn(made, "deadline", "")
    assert told[-1].deadline is None


def test_choosing_a_policy_shows_its_own_knobs_beneath_it():
    made, told = panel()
    assert facts(made, "order.weight") is None
    turn(made, "order", "weighted")
    assert told[-1].order == Weighted()
    turn(made, "order.weight", "0.75")
    assert told[-1].order == Weighted(weight=0.75)
    rows = [row["path"] for row in made.panel.layout[0]["knobs"]]
    assert rows.index("order.weight") == rows.index("order") + 1
    assert facts(made, "order.weight")["depth"] == facts(made, "order")["depth"] + 1


def test_few_knobs_are_visible_and_the_rest_are_folded():
    made, _ = panel()
    groups = {
        group["group"]: [row["path"] for row in group["knobs"]] for group in made.panel.layout
    }
    assert list(groups) == ["", "Workload", "Nested"]
    assert groups["Workload"] == ["seed"] and "seed" not in groups[""]


def test_the_first_knobs_stand_on_top_with_those_of_their_policy_and_the_rest_folded():
    made, _ = panel(update(Made(), {"order": "weighted"}), first=("order", "rate"))
    groups = {row["group"]: [knob["path"] for knob in row["knobs"]] for row in made.panel.layout}
    assert groups[""] == ["order", "order.weight", "rate"]
    assert "workers" in groups["More knobs"] and groups["Workload"] == ["seed"]


def test_a_turned_knob_says_where_it_began_and_goes_back_alone():
    made, told = panel()
    turn(made, "workers", "7")
    turn(made, "order", "weighted")
    assert made.panel.shown["workers"]["was"] == "4" and "was" not in made.panel.shown["rate"]
    made.heard({"path": "order", "do": "undo"})
    assert told[-1] == update(Made(), {"workers": 7})
    made.heard({"path": "workers", "do": "undo"})
    assert told[-1] == Made() and "was" not in made.panel.shown["workers"]


def test_a_turn_sends_only_what_it_changed():
    made, _ = panel()
    sent = []
    made.panel.param.watch(lambda *events: sent.extend(e.name for e in events), list(WATCHED))
    turn(made, "workers", "7")
    assert sorted(sent) == ["cli", "python", "shown"]


def test_what_the_owner_has_become_is_shown_and_reset_goes_back():
    made, told = panel()
    other = update(Made(), {"workers": 9})
    made.owner.config = other  # by somebody else
    made.refresh()
    assert told == [] and made.panel.shown["workers"]["field"] == "9"
    made.reset()
    assert told == [Made()] and made.panel.shown["workers"]["field"] == "4"


def test_a_refresh_clears_what_was_said_of_a_turn_that_did_not_fit():
    made, _ = panel()
    turn(made, "workers", "17")
    made.refresh()
    assert "workers" in made.message, "the owner is as it was"
    made.owner.config = update(Made(), {"workers": 9})
    made.refresh()
    assert made.message == "" and made._edits == {}


def test_a_setting_by_chance_is_valid_and_keeps_what_it_is_told_to_keep():
    made, told = panel(keep=("order",))
    for seed in range(50):
        made.randomise(random.Random(seed))
    assert len({config.workers for config in told}) > 5
    assert {config.mode for config in told} == {"fast", "slow"}
    assert all(config.order == Made().order for config in told)
    assert all(from_dict(Made, to_dict(config)) == config for config in told)


@pytest.mark.parametrize(
    "turned",
    [{}, {"workers": 2}, {"order": "weighted"}, {"order": {"kind": "weighted", "weight": 0.1}},
     {"nested": {"depth": 5}, "deadline": 4.0, "name": "a b'c"}],
)  # fmt: skip
def test_changes_on_the_defaults_give_the_config_back(turned):
    config = update(Made(), turned)
    assert update(Made(), changes(config)) == config


def test_the_command_line_quotes_what_a_shell_would_take_apart():
    config = update(Made(), {"name": "a b'c; rm", "chunked": False, "deadline": 4.0})
    words = shlex.split(as_cli(config, "flover"))
    assert words[:3] == ["workbench", "run", "flover"]
    sets = dict(word.split("=", 1) for word in words[4::2])
    assert sets == {"name": "a b'c; rm", "chunked": "false", "deadline": "4.0"}


def test_the_copied_command_says_what_differs_from_where_the_study_starts():
    start = update(Made(), {"name": "study's own", "deadline": 4.0})
    turned = update(start, {"deadline": Made().deadline})
    assert "--set" not in as_cli(start, "flover", start)
    assert as_cli(turned, "flover", start) == "workbench run flover --set deadline=none"


def test_the_copied_python_makes_the_same_config():
    config = update(Made(), {"order": {"kind": "weighted", "weight": 0.1}, "rate": 3.0})
    text = as_python(config)
    assert text.startswith("from tests.widgets.made_config import Made\n")
    assert "rate=3.0" in text and "{'kind': 'weighted', 'weight': 0.1}" in text
    compile(text, "copied", "exec")


def test_the_copied_python_of_a_study_opens_it_with_what_was_turned():
    start = update(Made(), {"name": "study's own"})
    turned = update(start, {"order": {"kind": "weighted", "weight": 0.1}, "rate": 3.0})
    text = as_study(turned, "flover", start)
    compile(text, "copied", "exec")
    assert "    order='weighted',\n    order__weight=0.1,\n" in text and "rate=3.0" in text
    assert 'open_study("flover")' in as_study(start, "flover", start)


def test_a_stale_knob_of_a_policy_that_was_exchanged_does_not_block_the_rest():
    made, told = panel(update(Made(), {"order": {"kind": "weighted", "weight": 0.1}}))
    made._edits["order.weight"] = 7.0
    turn(made, "order", "plain")
    assert told[-1].order.kind == "plain"


def test_an_unknown_kind_is_bad_input():
    with pytest.raises(BadInput, match="order"):
        update(Made(), {"order": "nobody"})


def test_seconds_far_below_one_are_shown_and_read_in_nanoseconds():
    handoff = Knob("handoff", "float", 5e-8, "signal", low=0.0, high=1e-5, unit="s")
    control = Control(handoff)
    assert control.stands()["field"] == "50 ns" and control.facts()["label"] == "Handoff"
    assert "from 0 to 10 µs" in control.help()
    typed = ("50 ns", "50 us", "5e-08", "2 µs", "soon")
    assert [control.read({"field": each}) for each in typed] == [5e-8, 5e-5, 5e-8, 2e-6, "soon"]


def test_an_empty_field_says_what_empty_means():
    cluster = Knob("cluster", "str", "", "a cluster with a sheet; empty: links as `model` says")
    assert Control(cluster).facts()["empty"] == "links as model says"
