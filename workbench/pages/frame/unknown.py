"""The page for an address that there is none for: what was asked, and where to go instead."""

from collections.abc import Callable
from html import escape

from tornado.web import Application, RequestHandler

from engine.core.names import nearest
from workbench.pages.frame.security import secure

LONGEST = 120  # characters of an address that are shown
PLACES = {"Start": "", "Live engine": "live", "Catalogue": "catalogue", "Runs": "runs"}
STYLE = (
    ":root{color-scheme:light dark}nav a{margin-right:24px}"
    "body{font:16px/1.5 system-ui,sans-serif;margin:64px auto;max-width:44em;padding:0 24px}"
)
Slugs = Callable[[], list[str]]


class Unknown(RequestHandler):
    """Status 404, in words and with links."""

    def initialize(self, slugs: Slugs) -> None:
        self.slugs = slugs

    def prepare(self) -> None:
        """Answers whatever the method; a system's bare name leads to its study."""
        secure(self._headers)
        asked, prefix = self.request.path, str(getattr(self.application, "prefix", ""))
        if place := study_of(asked, self.slugs(), prefix):
            self.redirect(place)
            return
        self.set_status(404)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(page(asked, self.slugs(), prefix))


def study_of(asked: str, slugs: list[str], prefix: str) -> str:
    """Where the study is that `/SLUG` or `/study/SLUG` names; "" for any other address."""
    words = asked.removeprefix(prefix).strip("/").split("/")
    named = words[-1] if words[:-1] in ([], ["study"]) else ""
    return f"{prefix}/study?slug={named}" if named in slugs else ""


def page(asked: str, slugs: list[str], prefix: str) -> str:
    """The document; systems that `asked` names, or nearly, come first."""
    last = asked.rstrip("/").rpartition("/")[2]
    links = [_link(f"{prefix}/study?slug={slug}", slug) for slug in nearest(last, slugs)]
    meant = f"<p>Did you mean {' or '.join(links)}?</p>" if links else ""
    places = "".join(_link(f"{prefix}/{place}", name) for name, place in PLACES.items())
    shown = asked if len(asked) <= LONGEST else f"{asked[:LONGEST]} …"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f"<title>No such page</title><style>{STYLE}</style></head><body>"
        f"<h1>No such page</h1><p>There is nothing at <code>{escape(shown)}</code>.</p>{meant}"
        f"<nav>{places}</nav></body></html>"
    )


def _link(address: str, name: str) -> str:
    return f'<a href="{escape(address)}">{escape(name)}</a>'


def say_so(application: Application, slugs: Slugs) -> None:
    """Let `application` (a Bokeh server's) answer so where nothing else does."""
    application.settings["default_handler_class"] = Unknown
    application.settings["default_handler_args"] = {"slugs": slugs}
