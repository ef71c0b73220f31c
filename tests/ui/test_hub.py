"""Behind a real JupyterHub: two people, each with a workbench of their own, on the hub's address.

    pip install jupyterhub && npm install --global configurable-http-proxy

It is skipped where these are not installed.
"""

import re

import nbformat
import pytest

from tests.ui.conftest import Visit
from tests.ui.hub import MISSING, PROXY, hub
from tests.ui.lab import CELL

pytestmark = [
    pytest.mark.ui,
    pytest.mark.skipif(MISSING, reason=f"needs jupyterhub and {PROXY}"),
]
PEOPLE = ("ada", "bob")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    with hub(folder, PEOPLE) as found:
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(book, folder / "homes/ada/study.ipynb")
        yield found


class Person(Visit):
    """Somebody who has logged in and whose lab is ready."""

    def __init__(self, browser, address, name):
        super().__init__(browser.new_context(), address, 1600, 1000)
        self.open("/hub/login")
        self.page.fill("#username_input", name)
        self.page.fill("#password_input", "any")
        self.page.click("#login_submit")
        self.page.wait_for_url(f"**/user/{name}/lab**")
        self.page.get_by_role("tab", name="Parallel Workbench").wait_for()


@pytest.fixture
def person(browser, address):
    made = []

    def log_in(name):
        made.append(Person(browser, address, name))
        return made[-1]

    yield log_in
    for one in made:
        one.context.close()
        assert one.outside == [], "\n".join(one.outside)
        assert one.faults == []


@pytest.mark.parametrize("name", PEOPLE)
def test_a_study_opens_and_turns(person, name):
    page = person(name).page
    page.get_by_role("tab", name="Parallel Workbench").click()
    side = page.locator(".wb-side")
    side.get_by_role("searchbox").fill("flover")
    side.get_by_role("heading", name="Systems (1 of").wait_for()
    side.locator("section").nth(1).locator(".wb-open").click()
    frame = page.frame_locator(".lm-DockPanel-widget:not(.lm-mod-hidden) iframe")
    frame.get_by_text("showing all 24 requests").first.wait_for()
    frame.locator(".knobs summary").get_by_text("Workload").click()
    count = frame.get_by_role("slider", name="Count", exact=True)
    count.focus()
    count.press("Home")
    frame.get_by_text("showing all 1 requests").first.wait_for()
    # Each server knows the runs of its own person only.
    runs = side.get_by_role("list", name="Runs").get_by_text(re.compile("#"))
    runs.first.wait_for()
    assert runs.count() == 1


def test_a_study_lives_in_a_notebook_s_cell(person):
    page = person("ada").open("/user/ada/lab/tree/study.ipynb?reset")
    cell = page.locator(".jp-Notebook .jp-CodeCell").first
    cell.wait_for()
    page.get_by_text(re.compile(r"^Python 3 .*\| Idle$")).first.wait_for()
    cell.click()
    page.keyboard.press("Shift+Enter")
    frame = page.frame_locator('iframe[title="flover"]')
    frame.get_by_text("showing all 24 requests").first.wait_for()


@pytest.mark.parametrize("place", ["workbench/app/study?slug=flover", "workbench/api/runs"])
def test_nobody_sees_what_is_another_s(person, place):
    ada, bob = person("ada"), person("bob")  # both servers are up
    assert ada.page.goto(f"{ada.address}/user/ada/{place}").status == 200
    assert bob.page.goto(f"{bob.address}/user/bob/{place}").status == 200
    assert bob.page.goto(f"{bob.address}/user/ada/{place}").status == 403
