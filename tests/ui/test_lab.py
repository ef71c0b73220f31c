"""A real JupyterLab below a base address, as a hub runs it: the extension's side bar, pages in tabs
and run files, and a study's page that lives in a notebook's cell and comes from the lab's own
address, from no other port."""

import re
import time

import nbformat
import pytest

from engine.core.file import save
from engine.core.run import Run
from tests.ui.conftest import DRAWN, Visit
from tests.ui.lab import CELL, running
from tests.workbench.toy import Ticks, tick

pytestmark = pytest.mark.ui
BASE = "/user/ann"  # as below a hub: nothing may count on the root
TICKS = 123  # of the recorded run: tokens in its figures
RUN = """() => {
  const opened = window.jupyterapp.shell.currentWidget;
  const run = async () => {
    await opened.context.ready;
    await opened.sessionContext.ready;
    await opened.sessionContext.session.kernel.info;
    await window.jupyterapp.commands.execute('notebook:run-all-cells');
  };
  const late = new Promise((_, fail) => setTimeout(() => fail('no kernel'), 300000));
  return Promise.race([run(), late]);
}"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A lab with a recorded run and a notebook in its folder; gives its address and token."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "work").mkdir()
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, folder / "work/study.ipynb")
    save(Run.execute(tick, Ticks(count=TICKS), study="flover").log, folder / "work/first.run")
    with running(folder, BASE + "/") as found:
        yield found


class InLab(Visit):
    """A visit to the lab; its pictures are those of the page in the tab in front."""

    def __init__(self, context, address, token):
        super().__init__(context, address, 1600, 1000)
        self.page.on("console", self._console)
        self.open(f"/lab/workspaces/one?reset&token={token}")
        self.page.locator(".jp-Launcher").first.wait_for()
        self.show_systems()

    def _console(self, message):
        if message.type == "error":
            self.faults.append(f"{message.text} {message.location.get('url', '')}")

    def do(self, command):
        self.page.evaluate(f"void window.jupyterapp.commands.execute('{command}')")

    def show_systems(self):
        self.do("parallel-workbench:show-side-bar")
        self.side.get_by_role("heading", name="Systems (").wait_for()

    @property
    def side(self):
        return self.page.locator(".wb-side")

    @property
    def frame(self):
        return self.page.frame_locator(".lm-DockPanel-widget:not(.lm-mod-hidden) iframe")

    def picture(self):
        return self.frame.locator("canvas").evaluate_all(DRAWN)

    def study(self, title):
        """The row of a study, found by searching for it."""
        self.side.get_by_role("searchbox").fill(title)
        self.side.get_by_role("heading", name="Systems (1 of").wait_for()
        return self.side.locator("section").nth(1).locator(".wb-open")


@pytest.fixture(scope="module")
def one_visit(context, lab):
    """One page of the lab for test after test: it takes seconds of a processor to load."""
    visit = InLab(context, *lab)
    yield visit
    visit.page.close()


@pytest.fixture
def seen(one_visit):
    """The visit, which must have asked nobody else for anything and met no fault."""
    one_visit.show_systems()
    yield one_visit
    assert one_visit.outside == [], "\n".join(one_visit.outside)
    assert one_visit.faults == []


def at_its_end(seen):
    """The picture of the whole run, whose replay takes a dozen seconds."""
    seen.frame.get_by_role("slider", name="Moment of the run").press("End")
    return seen.settled()


def test_a_study_opens_turns_and_is_still_there_after_a_reload(seen):
    page, side = seen.page, seen.side
    assert side.get_by_role("list", name="Runs").get_by_text("first.run").is_visible()
    every = side.locator("section").nth(1).locator("li").count()
    side.get_by_role("checkbox", name="built").uncheck()
    assert side.locator("section").nth(1).locator("li").count() > every
    assert side.get_by_text("not built yet").count() > 0
    side.get_by_role("checkbox", name="built").check()
    side.get_by_role("combobox", name="Family").select_option("decoding")
    seen.study("flover")
    page.keyboard.press("Tab")  # family
    page.keyboard.press("Tab")  # built
    page.keyboard.press("Tab")  # look again
    page.keyboard.press("Tab")  # the first run
    page.keyboard.press("Tab")  # the first system
    page.keyboard.press("Enter")
    seen.frame.get_by_role("heading", name="Flover").wait_for()
    seen.frame.get_by_text("showing all 24 requests").first.wait_for()
    page.get_by_role("tab", name="Flover").wait_for()
    side.get_by_role("list", name="Runs").get_by_text("flover #1").wait_for()  # a live run
    before = at_its_end(seen)
    seen.frame.locator(".knobs summary").get_by_text("Workload").click()
    count = seen.frame.get_by_role("slider", name="Count", exact=True)
    count.focus()
    count.press("Home")
    seen.frame.get_by_text("showing all 1 requests").first.wait_for()
    assert seen.settled() != before
    turned = "window.jupyterapp.shell.currentWidget.content.place.includes('count=1')"
    page.wait_for_function(turned)
    page.wait_for_timeout(2500)  # the lab saves its layout a second after a change
    seen.do("docmanager:save-all")
    page.goto(page.url.split("?")[0])  # a reload, without the reset of the first address
    seen.frame.get_by_role("heading", name="Flover").wait_for()
    seen.frame.get_by_text("showing all 1 requests").first.wait_for()


def test_a_run_file_opens_by_double_click_and_follows_the_theme(seen):
    page = seen.page
    seen.do("filebrowser:activate")
    page.locator(".jp-DirListing-item", has_text="first.run").dblclick()
    seen.frame.get_by_role("cell", name=str(TICKS), exact=True).first.wait_for()
    shade = "e => getComputedStyle(e).backgroundColor"
    main = seen.frame.locator(".main").first
    light = main.evaluate(shade)
    page.evaluate(
        "void window.jupyterapp.commands.execute('apputils:change-theme',"
        " {theme: 'JupyterLab Dark'})"
    )
    until = time.monotonic() + 300
    while main.evaluate(shade) == light and time.monotonic() < until:
        page.wait_for_timeout(100)
    assert main.evaluate(shade) != light


def test_a_study_is_inserted_into_a_notebook(seen):
    page = seen.page
    row = seen.study("flover")
    row.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    cell = page.locator(".jp-Notebook .jp-CodeCell", has_text="open_study").first
    cell.wait_for()
    text = "window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.source"
    assert page.evaluate(text) == 'from workbench import open_study\n\nopen_study("flover")'


def test_the_right_button_makes_a_study_s_notebook_and_its_check(seen):
    page = seen.page
    seen.study("flover").click(button="right")
    items = page.locator(".lm-Menu-item", has_text=re.compile("Its|Insert|^Open$"))
    said = [text.strip() for text in items.all_inner_texts()]
    assert said[:4] == [
        "Open", "Insert Study into Notebook", "Make Its Notebook", "Insert a Check of Its Claims",
    ]  # fmt: skip
    items.nth(2).click()
    page.get_by_role("tab", name="flover.ipynb").wait_for()
    page.locator(".jp-Notebook .jp-Cell", has_text="Where it stops being true").first.wait_for()
    seen.study("flover").click(button="right")
    items.nth(3).click()
    page.locator(".jp-Notebook .jp-CodeCell", has_text=".check():").first.wait_for()


def test_the_launcher_s_cards_have_an_icon_each(seen):
    page = seen.page
    seen.do("launcher:create")
    cards = page.locator(".jp-Launcher-section", has_text="Parallel Workbench").last.locator(
        ".jp-LauncherCard"
    )
    page.locator(".jp-LauncherCard[title^='A notebook in this folder']").last.wait_for()
    drawn = cards.locator("svg g").evaluate_all("all => all.map(g => g.innerHTML)")
    assert len(drawn) == cards.count() >= 9 and len(set(drawn)) == len(drawn)
    names = cards.all_inner_texts()
    assert {"Tour notebook", "Open a trace…", "Runs"} <= {name.strip() for name in names}


class Inside(Visit):
    """A visit to a notebook whose pictures are those of the frame in its cell."""

    @property
    def frame(self):
        return self.page.frame_locator('iframe[title="flover"]')

    def picture(self):
        return self.frame.locator("canvas").evaluate_all(DRAWN)


def test_a_study_lives_in_a_notebook_s_cell(context, lab, tmp_path):
    address, token = lab
    seen, asked = Inside(context, address, 1600, 1100), []
    seen.context.on("request", lambda request: asked.append(request.url))
    seen.page.on("websocket", lambda socket: asked.append(socket.url.replace("ws:", "http:", 1)))
    try:
        page = seen.open(f"/lab/tree/study.ipynb?reset&token={token}")
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        page.evaluate(RUN)
        page.get_by_text(re.compile(r"^\[1\]:$")).first.wait_for()
        seen.frame.get_by_role("heading", name="Flover").wait_for()
        seen.frame.locator("canvas").first.wait_for()
        seen.frame.get_by_text("showing all 24 requests").first.wait_for()
        first = at_its_end(seen)
        seen.frame.get_by_text("More knobs").click()
        count = seen.frame.get_by_role("slider", name="Count", exact=True)
        count.focus()
        count.press("Home")
        seen.frame.get_by_text("showing all 1 requests").first.wait_for()
        assert seen.settled() != first
        page.screenshot(path=tmp_path / "lab.png")
        assert seen.outside == [], "\n".join(seen.outside)
        its_own = (f"{address}/", "blob:")  # a blob is what the page holds itself
        assert [place for place in asked if not place.startswith(its_own)] == []
        assert any("/user/ann/workbench/kernel/" in place for place in asked)
        assert seen.faults == []
    finally:
        seen.page.close()
