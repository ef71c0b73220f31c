"""A real browser: the page that replays, the bar's own figures, and a stage with knobs, offline."""

import re
import socket
import time
from pathlib import Path

import pytest

from engine.core.run import Run
from tests.widgets.browser import settle
from tests.widgets.made_config import Made, Owned
from tests.widgets.made_runs import serving
from widgets import theme
from widgets.export.export import page
from widgets.page.bundle import bundle
from widgets.stage import transport
from widgets.stage.transport import stepped
from widgets.view import views

pytestmark = pytest.mark.ui
playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")


@pytest.fixture
def tab(browser):
    """A tab that refuses every request that leaves this machine, and remembers faults."""
    made = browser.new_page(viewport={"width": 1280, "height": 900})
    made.outside, made.faults = [], []

    def gate(route):
        url = route.request.url
        if url.startswith(("http://localhost", "http://127.", "file:", "data:", "blob:")):
            route.continue_()
        else:
            made.outside.append(url)
            route.abort()

    made.route("**/*", gate)
    made.on("pageerror", lambda fault: made.faults.append(str(fault)))
    yield made
    made.close()


def test_the_page_replays_without_a_server(tab, tmp_path):
    log = serving(requests=8)
    path = tmp_path / "run.html"
    path.write_text(page(log, list(views()), title="A <b>run</b>"))
    tab.goto(path.as_uri())
    tab.wait_for_selector(".pw-surface canvas", state="attached")
    playwright.expect(tab.locator("[data-view=latency] .pw-value")).to_have_count(4)
    assert tab.title() == "A <b>run</b>"

    def drawn():
        charts = "section:is([data-view=levels], [data-view=latency]) canvas"
        return [canvas.evaluate("c => c.toDataURL()") for canvas in tab.locator(charts).all()]

    ended = drawn()
    tab.evaluate(
        "t => document.dispatchEvent(new CustomEvent('workbench-cursor', {detail: t}))",
        log.duration / 2,
    )
    assert tab.inner_text("#clock").startswith(theme.figure(log.duration / 2, "s"))
    settle(tab)
    middle = drawn()
    tab.fill("#time", "0")
    settle(tab)
    changed = [len({*three}) for three in zip(ended, middle, drawn(), strict=True)]
    # Latencies by then under their axes; the cursor over the levels, which stay.
    assert changed == [3, 1, 1, 3]
    tab.click("#play")
    # The page's own policy forbids the polling script of `wait_for_function`.
    playwright.expect(tab.locator("#clock")).not_to_have_text(re.compile("^0 s of"))
    assert tab.outside == [] and tab.faults == []


def bar():
    """The script of the bar, its names in reach."""
    path = Path(transport.__file__).with_suffix(".js")
    return bundle(path).replace("export default { render }", "")


def test_the_bar_writes_seconds_as_the_theme_does(tab):
    values = [0, 1e-9, 4.2e-7, 0.00123, 0.0994, 0.9996, 0.99949, 1, 12.345, 59.97, 60, 754.3, 1e5]
    each = 'values.map((value) => worded(value, "s"))'
    written = tab.evaluate(f"values => {{ {bar()}; return {each} }}", values)
    assert written == [theme.figure(value, "s") for value in values]


def test_the_bar_steps_as_python_does(tab):
    code = bar()
    steps = [0.1, 0.2, 0.2, 0.5, 0.9]
    asked = [(now, by) for now in (0, 0.05, 0.1, 0.2, 0.3, 0.9, 1.0) for by in (-9, -2, -1, 1, 3)]
    each = "asked.map(([t, by]) => stepped(steps, t, by, 1))"
    found = tab.evaluate(f"([steps, asked]) => {{ {code}; return {each} }}", [steps, asked])
    assert found == [stepped(steps, now, by, 1.0) for now, by in asked]


MODEL = """
  const traits = {time: 0, duration: 1, playing: false, speed: 1, follow: true, live: false,
    paused: false, modelled: false, steps: null, work: {}, is_dark: false, options: {}, cards: 0};
  const heard = {}, told = [];
  const model = {
    get: (name) => traits[name],
    on: (name, act) => (heard[name] ||= []).push(act),
    set: (name, value) => {
      if (traits[name] === value) return;
      traits[name] = value;
      if (name === "command") told.push(value);
      else for (const act of heard[`change:${name}`] || []) act();
    },
    save_changes: () => {},
  };
  const el = document.body.appendChild(document.createElement("div"));
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", {key}));
  const clock = () => el.querySelector(".clock").textContent;
"""


def test_the_bar_shows_where_the_host_stands_though_it_answers_to_none_of_the_steps(tab):
    """The cursor follows, its own time is 0 already: to go there changes nothing to be heard."""
    code = bar()
    found = tab.evaluate(
        f"""async () => {{ {code} {MODEL}
          render({{ model, el }});
          press("Home");
          model.set("follow", false);
          const home = clock();
          press("ArrowRight");
          model.set("time", 0.25);
          const onwards = clock();
          press("Home");
          model.set("time", 0.5);  // the host goes elsewhere, and never says it was at 0
          await new Promise((done) => setTimeout(done, 2 * ANSWER));
          return [home, onwards, clock(), told.map((each) => each.do)];
        }}"""
    )
    asked = ["seek", "seek", "step", "seek"]
    assert found == ["0 s of 1 s", "0.25 s of 1 s", "0.5 s of 1 s", asked]


def serve(app):
    """The app on a free port of this machine; a function that stops it again."""
    import panel as pn

    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    server = pn.serve({"/": app}, port=port, show=False, threaded=True)
    for _ in range(3000):
        with socket.socket() as probe:
            if probe.connect_ex(("localhost", port)) == 0:
                break
        time.sleep(0.1)
    return f"http://localhost:{port}/", server.stop


@pytest.mark.filterwarnings("ignore")
def test_a_turned_knob_and_a_scrub_change_the_picture(tab):
    import panel as pn

    from widgets.knobs.knobs import Knobs
    from widgets.stage.stage import Stage

    stages, configs = [], []

    def app():
        stage = Stage(["levels", "latency"])
        stages.append(stage)

        def turned(config):
            configs.append(config)
            stage.open(Run(serving(seed=config.workers, requests=config.workers)))

        knobs = Knobs(Owned(Made(), turned))
        stage.open(Run(serving(requests=6)))
        stage.start()
        return pn.Row(pn.Column(knobs.panel, width=320), stage.__panel__())

    address, stop = serve(app)
    try:
        tab.goto(address)
        tab.get_by_text("How full is the engine").wait_for()
        figure = tab.locator(".clock")
        figure.wait_for()
        tab.wait_for_function("window.Bokeh && Bokeh.documents[0]?.is_idle")
        first = figure.inner_text()
        field = tab.locator("input[type=text], input:not([type])").first
        field.fill("12")
        field.press("Enter")
        playwright.expect(figure).not_to_have_text(first)
        assert configs[-1].workers == 12
        second = figure.inner_text()
        tab.locator(".transport").click(position={"x": 2, "y": 2})
        tab.keyboard.press("Home")
        playwright.expect(figure).not_to_have_text(second)
        tab.keyboard.press("ArrowRight")
        playwright.expect(figure).not_to_have_text(re.compile("^0 s of"))
        for _ in range(3000):  # the bar steps by itself, the host hears of it: of Home, of the step
            if 0 < stages[-1].cursor.now < stages[-1].cursor.duration:
                break
            tab.wait_for_timeout(100)
        assert 0 < stages[-1].cursor.now < stages[-1].cursor.duration
        assert tab.outside == [] and tab.faults == []
    finally:
        stop()
