"""`open_study` in a real JupyterLab below a base address, as a hub runs it: the study's page lives
in the notebook and comes from the lab's own address, from no other port."""

import re

import nbformat
import pytest

from tests.ui.conftest import DRAWN, Visit
from tests.ui.lab import running

pytestmark = pytest.mark.ui
CELL = 'from workbench import open_study\n\nopen_study("flover")'
RUN = """() => {
  const opened = window.jupyterapp.shell.currentWidget;
  const run = async () => {
    await opened.context.ready;
    await opened.sessionContext.ready;
    await opened.sessionContext.session.kernel.info;
    await window.jupyterapp.commands.execute('notebook:run-all-cells');
  };
  const late = new Promise((_, fail) => setTimeout(() => fail('no kernel'), 120000));
  return Promise.race([run(), late]);
}"""


@pytest.fixture
def lab(tmp_path):
    """A lab of this test's own with one notebook in it; gives the notebook's address."""
    work = tmp_path / "work"
    work.mkdir()
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, work / "study.ipynb")
    with running(tmp_path, "/user/ann/") as (address, token):
        yield address, f"/lab/tree/study.ipynb?reset&token={token}"


class Inside(Visit):
    """A visit to a notebook whose pictures are those of the frame in its cell."""

    @property
    def frame(self):
        return self.page.frame_locator('iframe[title="flover"]')

    def picture(self):
        return self.frame.locator("canvas").evaluate_all(DRAWN)


def test_a_study_lives_in_a_notebook_s_cell(browser, lab, tmp_path):
    address, notebook = lab
    seen = Inside(browser.new_context(), address, 1600, 1100)
    asked = []
    seen.context.on("request", lambda request: asked.append(request.url))
    seen.page.on("websocket", lambda socket: asked.append(socket.url.replace("ws:", "http:", 1)))
    try:
        seen.page.set_default_timeout(120_000)
        page = seen.open(notebook)
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        page.evaluate(RUN)
        page.get_by_text(re.compile(r"^\[1\]:$")).first.wait_for()
        seen.frame.get_by_role("heading", name="Flover").wait_for()
        seen.frame.locator("canvas").first.wait_for()
        seen.frame.get_by_text("showing all 24 requests").first.wait_for()
        first = seen.settled()
        count = seen.frame.get_by_role("slider").first
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
        seen.context.close()
