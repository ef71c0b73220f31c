"""In a real browser: pages pass their own policy, and text from outside runs nowhere in them."""

import json
import urllib.parse

import pytest

from engine.core.events import Branch, Closed, Level, Mark, Opened, Span
from engine.core.file import save
from engine.core.log import Log
from tests.ui.served import serving

pytestmark = pytest.mark.ui
PAYLOADS = (
    "<script>window.owned=1</script>",
    "<img src=x onerror=window.owned=2>",
    '"><svg onload=window.owned=3>',
    "</script><script>window.owned=4</script>",
    "javascript:window.owned=5",
    "<iframe srcdoc='<script>parent.owned=6</script>'></iframe>",
    "${window.owned=7}{{window.owned=8}}",
)
READY = "window.Bokeh?.index?.roots[0]?.is_idle"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run and a trace of which every text is a payload."""
    place = tmp_path_factory.mktemp("payloads")
    log = Log()
    log.emit(Opened(0.0, {"knob": PAYLOADS[0]}, study=PAYLOADS[1], facts={"lanes": [PAYLOADS[2]]}))
    for n, text in enumerate(PAYLOADS):
        log.emit(Span(n + 1.0, text, text, n + 0.5, tag=f"phase={text}"))
        log.emit(Level(n + 1.0, text, text, 3.0))
        log.emit(Branch(n + 1.0, "", text, "running", why=text))
        log.emit(Mark(n + 1.0, text, text, text))
    log.emit(Closed(9.0, PAYLOADS[1]))
    save(log, place / "<img src=x onerror=window.owned=9>.run")
    spans = [
        {"ph": "X", "name": text, "cat": text, "pid": text, "tid": text, "ts": n, "dur": 1}
        for n, text in enumerate(PAYLOADS)
    ]
    (place / "<svg onload=window.owned=10>.json").write_text(json.dumps({"traceEvents": spans}))
    return place


@pytest.fixture(scope="module")
def address(folder, tmp_path_factory):
    files = sorted(path.name for path in folder.iterdir())
    with serving(tmp_path_factory.mktemp("said"), ["open", *files], place=folder) as found:
        yield found


def places(folder):
    files = [f"/run?file={urllib.parse.quote(path.name)}" for path in sorted(folder.iterdir())]
    asked = urllib.parse.quote(PAYLOADS[1])
    # The first page at the very end: it starts the live engine, which takes others' processor.
    return ["/catalogue", "/roofline", "/runs", *files, f"/study?name={asked}",
            f"/run?file={asked}", f"/compare?a={asked}&b={asked}", "/"]  # fmt: skip


def test_a_script_that_came_as_text_would_not_run(browser, address):
    """The policy itself, with a page that takes a payload for markup."""
    page = browser.new_page()
    page.goto(address + "/runs", wait_until="domcontentloaded")
    page.evaluate(
        """text => { document.body.insertAdjacentHTML("beforeend", text);
        const script = document.createElement("script"); script.textContent = "window.owned = 11";
        document.body.append(script); }""",
        "".join(PAYLOADS),
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.owned") is None
    page.close()


def test_no_payload_runs_and_no_page_breaks_its_policy(browser, address, folder):
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text))
    page.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
    wrong = {}
    for place in places(folder):
        said.clear()
        answer = page.goto(address + place, wait_until="domcontentloaded")
        page.wait_for_function(READY)
        page.wait_for_timeout(700)
        policy = answer.headers.get("content-security-policy", "")
        for name in ("script-src", "object-src 'none'", "frame-ancestors 'self'"):
            assert name in policy, place
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        broken = [line[:200] for line in said if "Content Security Policy" in line]
        if page.evaluate("window.owned") is not None or broken or "dialog" in said:
            wrong[place] = (page.evaluate("window.owned"), broken)
    page.close()
    assert not wrong
