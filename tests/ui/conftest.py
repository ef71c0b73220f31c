"""A served app and a browser that may talk to nobody else."""

import re
import time

import pytest

from tests.conftest import PATIENCE
from tests.ui.served import serving

LOCAL = re.compile(r"^(https?|wss?)://(127\.0\.0\.1|localhost)[:/]|^(data|blob|about):")

# A sum of each canvas: a hundredth of the work that a PNG of it would be.
DRAWN = """all => all.map(c => {
  if (!c.width || !c.height) return '';
  const {data} = c.getContext('2d').getImageData(0, 0, c.width, c.height);
  const pixels = new Uint32Array(data.buffer);
  let sum = 7;
  for (let i = 0; i < pixels.length; i++) sum = (Math.imul(sum, 31) + pixels[i]) | 0;
  return `${c.width}x${c.height} ${sum}`;
}).join()"""


@pytest.fixture(scope="session")
def app(tmp_path_factory):
    """The app in a process of its own; gives its address."""
    with serving(tmp_path_factory.mktemp("app")) as address:
        yield address


class Visit:
    """A page with what it asked of the outside, which it cannot reach, and what went wrong in it.

    Nothing stands between page and server: a browser whose requests are held up keeps no script,
    and would fetch and compile megabytes of them for every page.
    """

    def __init__(self, context, address, width=1280, height=900):
        self.outside, self.faults, self.context = [], [], context
        self.page = context.new_page()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.page.on("request", lambda request: self._see(request.url))
        self.page.on("websocket", lambda socket: self._see(socket.url))
        self.address = address

    def _see(self, url):
        if not LOCAL.match(url):
            self.outside.append(url)

    def open(self, place):
        self.page.goto(f"{self.address}{place}")
        return self.page

    def picture(self):
        """What the canvases show, as one text of sums of their pixels."""
        return self.page.locator("canvas").evaluate_all(DRAWN)

    def changed(self, before, seconds=PATIENCE):
        """The picture, once it differs from `before`."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now = self.picture()
            if now != before:
                return now
            self.page.wait_for_timeout(150)  # each look reads every pixel
        raise AssertionError("the picture did not change")

    def settled(self, still=5):
        """The picture, once it has stayed the same a while."""
        last, same = self.picture(), 0
        while same < still:
            self.page.wait_for_timeout(200)
            now = self.picture()
            same, last = (same + 1 if now == last else 0), now
        return last


@pytest.fixture(scope="module")
def context(browser):
    """One visitor of a module's pages: scripts that they share are fetched and compiled once."""
    made = browser.new_context()
    yield made
    made.close()


@pytest.fixture
def visit(browser, context, app):
    """Opens a page of the app, as the module's visitor or as somebody `new`."""
    made = []

    def go(new=False, **size):
        made.append(Visit(browser.new_context() if new else context, app, **size))
        return made[-1]

    yield go
    for one in made:
        one.page.close()
        if one.context is not context:
            one.context.close()
