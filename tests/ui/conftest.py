"""A served app and a browser that may talk to nobody else."""

import re
import time

import pytest

from tests.ui.served import serving

LOCAL = re.compile(r"^(https?|wss?)://(127\.0\.0\.1|localhost)[:/]|^(data|blob|about):")


@pytest.fixture(scope="session")
def app(tmp_path_factory):
    """The app in a process of its own; gives its address."""
    with serving(tmp_path_factory.mktemp("app")) as address:
        yield address


class Visit:
    """A page with what it asked of the outside and what went wrong in it."""

    def __init__(self, browser, address, width=1280, height=900):
        self.outside, self.faults = [], []
        self.context = browser.new_context(viewport={"width": width, "height": height})
        self.context.route("**/*", self._route)
        self.page = self.context.new_page()
        self.page.set_default_timeout(40_000)
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.page.on("websocket", lambda socket: self._see(socket.url))
        self.address = address

    def _route(self, route):
        if self._see(route.request.url):
            route.continue_()
        else:
            route.abort()

    def _see(self, url):
        local = bool(LOCAL.match(url))
        if not local:
            self.outside.append(url)
        return local

    def open(self, place):
        self.page.goto(f"{self.address}{place}")
        return self.page

    def picture(self):
        """What the canvases show, as one text of their pixels."""
        drawn = "all => all.map(c => c.width && c.height ? c.toDataURL() : '').join()"
        return self.page.locator("canvas").evaluate_all(drawn)

    def changed(self, before, seconds=30):
        """The picture, once it differs from `before`."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now = self.picture()
            if now != before:
                return now
            self.page.wait_for_timeout(50)
        raise AssertionError("the picture did not change")

    def settled(self, still=5):
        """The picture, once it has stayed the same a while."""
        last, same = self.picture(), 0
        while same < still:
            self.page.wait_for_timeout(200)
            now = self.picture()
            same, last = (same + 1 if now == last else 0), now
        return last


@pytest.fixture
def visit(browser, app):
    made = []

    def go(**size):
        made.append(Visit(browser, app, **size))
        return made[-1]

    yield go
    for one in made:
        one.context.close()
