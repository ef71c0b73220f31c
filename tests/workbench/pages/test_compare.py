"""The compare page: two runs of the shelf and, where there are more, as many as one likes."""

from engine.core.run import Run
from tests.engine.core.test_run import Counting, count
from workbench.pages.compare import ComparePage
from workbench.pages.shelf.shelf import Shelf


def shelf_of(*names: str) -> Shelf:
    shelf = Shelf()
    for steps, name in enumerate(names, 1):
        shelf.keep(Run.execute(count, Counting(steps=steps)), name)
    return shelf


def test_a_third_run_joins_the_two():
    page = ComparePage(shelf_of("one", "two", "three"))
    assert [select.value for select in page.selects] == ["two", "three"]
    assert page.more.visible and page.more.options == ["one"]
    page.more.value = ["one"]
    assert page.compare.titles == ["A two", "B three", "C one"]
    assert "<th>C / A</th>" in page.compare._table.object
    page.first.value = "one"  # it is the first now, and no longer the third
    assert page.more.value == [] and page.compare.titles == ["A one", "B three"]


def test_two_runs_leave_no_more_to_choose():
    assert not ComparePage(shelf_of("one", "two")).more.visible


def test_a_run_that_another_page_has_dropped_is_said_to_be_gone():
    page = ComparePage(shelf := shelf_of("one", "two", "three"))
    shelf.drop("one")
    page.first.value = "one"
    assert "not on the shelf" in page.place[0].object
    page.first.value = "two"
    assert page.compare.titles == ["A two", "B three"]
