"""The table of runs: what it tells of each, and a shelf whose runs are renamed and dropped."""

from functools import partial

import pytest

from engine.core.errors import BadInput
from engine.core.events import Token
from engine.core.file import load, save
from engine.core.run import Run
from tests.engine.core.test_run import Counting, count
from tests.widgets.made_runs import serving
from workbench.catalogue import study
from workbench.pages.frame.shell import address
from workbench.pages.runs import RunsPage
from workbench.pages.shelf.runs_table import course, differing, runs_table, sparkline
from workbench.pages.shelf.shelf import Shelf

TO = partial(address, dark=False)


def test_a_run_is_told_by_its_study_and_by_what_differs(tmp_path):
    chosen = study("flash-attention-4")
    preset = next(iter(chosen.presets))
    shelf = Shelf()
    shelf.keep(Run.execute(chosen.driver, chosen.config, study=chosen.slug), "as it is")
    run = Run.execute(chosen.driver, chosen.configured({}, preset), study=chosen.slug)
    shelf.keep(run, "<b>without</b>")
    table = runs_table(shelf, "as it is", TO)
    assert table.index("&lt;b&gt;without") < table.index("as it is")  # the newest first
    assert "FlashAttention-4" in table and "modelled" in table and "<b>" not in table
    assert differing(chosen.slug, run) and differing(chosen.slug, shelf.get("as it is")) == []
    assert table.count(">compare<") == 1
    preset_ones = differing(chosen.slug, run)
    for kept, told in ((run, preset_ones), (shelf.get("as it is"), [])):
        save(kept.log, tmp_path / "a.run")
        opened = Run(load(tmp_path / "a.run"))
        assert len(differing(chosen.slug, opened)) == len(told), "a file's, by its header"


def test_runs_are_renamed_and_dropped():
    shelf = Shelf()
    for name in ("first", "second"):
        shelf.keep(Run.execute(count, Counting(steps=1)), name)
    shelf.rename("first", "  a new   name ")
    assert list(shelf.runs) == ["a new name", "second"]
    with pytest.raises(BadInput, match="another run has this name"):
        shelf.rename("second", "a new name")
    with pytest.raises(BadInput, match="give it a name"):
        shelf.rename("second", " ")
    shelf.drop("second")
    assert list(shelf.runs) == ["a new name"]
    with pytest.raises(BadInput, match="not on the shelf"):
        shelf.drop("second")


def test_runs_are_tagged_and_marked_to_be_compared():
    shelf = Shelf()
    for name in ("first", 'se"cond'):
        shelf.keep(Run.execute(count, Counting(steps=1)), name)
    shelf.tag("first", " a<b>,  thesis, thesis,")
    assert shelf.tags["first"] == ("a<b>", "thesis")
    for words, wrong in (("x" * 25, "24 characters"), (",".join("abcdefghi"), "8 at most")):
        with pytest.raises(BadInput, match=wrong):
            shelf.tag("first", words)
    shelf.rename("first", "1st")
    table = runs_table(shelf, "1st", TO, dark=True)
    assert "#a&lt;b&gt;</a>" in table and "runs?tag=thesis" in table and 'value="dark"' in table
    assert table.count('type="checkbox" name="runs"') == 2 and 'value="se&quot;cond"' in table
    only = runs_table(shelf, "1st", TO, tag="thesis")
    assert only.count("checkbox") == 1 and "Show all" in only
    shelf.drop("1st")
    assert shelf.tags == {} and 'type="submit"' not in runs_table(shelf, None, TO)


def test_the_page_follows_what_it_renames_and_drops():
    shelf = Shelf()
    for name in ("first", "second"):
        shelf.keep(Run.execute(count, Counting(steps=1)), name)
    page = RunsPage(shelf)
    page.name.value_input = "second"
    page.choice.value = "first"
    page.name.value_input = "second"
    page._renamed(None)
    assert "another run" in page.fault.object
    page._dropped(None)
    assert page.choice.value == "second" and page.fault.object == ""
    page._dropped(None)
    assert page.choice.value is None and not page.choice.visible
    page.stage is None or page.stage.stop()


def test_the_course_of_a_run_is_its_tokens_over_time():
    run = Run(serving(requests=6))
    said, values = course(run)
    assert said.startswith("tokens") and values.sum() == len(run.log.of(Token)) > 0
    assert sparkline(run).count(",") == len(values)
