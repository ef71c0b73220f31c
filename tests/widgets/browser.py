"""A headless chromium for tests: pages without a network, which count what they asked for."""


class Seen:
    """What a page did that it should not have: requests, errors, dialogs."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []


class Tab:
    """One page of a browser, for one document after another: a page of its own, with a process to
    start, would cost a test more than all it asks."""

    def __init__(self, browser) -> None:
        self.browser, self.seen = browser, Seen()
        context = browser.new_context()
        self.page = page = context.new_page()

        def block(route) -> None:
            self.seen.requests.append(route.request.url)
            route.abort()

        def dismiss(dialog) -> None:
            self.seen.errors.append(dialog.message)
            dialog.dismiss()

        context.route("**/*", block)
        page.on("pageerror", lambda error: self.seen.errors.append(str(error)))
        page.on("console", lambda m: self.seen.errors.append(m.text) if m.type == "error" else None)
        page.on("dialog", dismiss)

    def show(self, html: str, width: int, height: int):
        """The page with a document of its own, the pointer in a corner, and what it does wrong."""
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")
        self.page.set_viewport_size({"width": width, "height": height})
        self.seen = Seen()
        self.page.set_content(f"<!doctype html><meta charset=utf-8>{html}")
        return self.page, self.seen


kept: list[Tab] = []  # that of the present module's browser, until a test closes it


def open_page(browser, html: str, width: int = 1280, height: int = 800):
    """A page showing `html`, with every request blocked and noted."""
    if not kept or kept[0].browser is not browser or kept[0].page.is_closed():
        kept[:] = [Tab(browser)]
    page, seen = kept[0].show(html, width, height)
    page.wait_for_selector(".pw-surface canvas", state="attached")
    settle(page)
    return page, seen


def settle(page) -> None:
    """Two animation frames later, when what was asked for has been drawn."""
    page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    page.wait_for_timeout(60)


def colours(page, selector: str) -> int:
    """How many different pixels a canvas shows."""
    return page.evaluate(
        """(selector) => {
            const canvas = document.querySelector(selector);
            const size = [canvas.width, canvas.height];
            const data = canvas.getContext("2d").getImageData(0, 0, ...size).data;
            return new Set(new Uint32Array(data.buffer)).size;
        }""",
        selector,
    )


def pixel(page, selector: str, x: float, y: float) -> list[int]:
    """The colour at a point of a canvas, in CSS pixels of a page without scaling."""
    return page.evaluate(
        """([selector, x, y]) => [...document.querySelector(selector).getContext("2d")
            .getImageData(x, y, 1, 1).data].slice(0, 3)""",
        [selector, x, y],
    )


def move(page, selector: str, x: float, y: float) -> None:
    """The pointer to a point of a canvas."""
    box = page.locator(selector).first.bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    settle(page)


def zoom(page, times: int = 1, by: float = -300) -> None:
    """Turn the wheel under the pointer with Ctrl held: closer where `by` is negative."""
    page.keyboard.down("Control")
    for _ in range(times):
        page.mouse.wheel(0, by)
    page.keyboard.up("Control")
    settle(page)
