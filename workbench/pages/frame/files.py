"""What a page loads, and when: the scripts go out before the page is built, modules are imported by
the browser itself, and each file is kept for good under an address that changes with what is in it.

A page is sent in two parts. While the server builds the second one, the browser fetches, compiles
and runs the scripts that the first one names.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import panel_material_ui as pmui
from bokeh.embed.util import RenderItem
from bokeh.model import Model
from jinja2 import Environment, FileSystemLoader, Template
from panel.io.resources import LOCAL_DIST, Resources, bundle_resources, patch_model_css
from panel.io.server import AutoloadJsHandler, DocHandler
from panel.io.state import set_curdoc
from panel.models import AnyWidgetComponent, ReactiveESM
from tornado.web import Application, RequestHandler

from engine.core.errors import BadInput
from engine.core.paths import dataset
from widgets.page.component import Component
from workbench.pages.frame.security import NONCE, number, secure

PLACE = "modules"  # below the app's prefix
KEPT = "private, max-age=31536000, immutable"
# Panel's own importer rewrites every module, which keeps the browser from keeping it compiled; no
# view here draws by WebGL.
LEFT_OUT = ("es-module-shims", "bokeh-gl")
SHEET = Path(pmui.__file__).parent / "dist/panel-material-ui.bundle.css"  # of the components
HEAD = "page_head"  # of an application's settings: the first part of its pages


@cache
def template(name: str) -> Template:
    """One of the two parts of a page's document: "head" or "rest"."""
    found = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    return found.get_template(f"page_{name}.html")


class Page(DocHandler):
    """A page: its head at once, the rest when it is built.

    In place of Panel's own way, which for every page looks on the disk for what is in the head.
    """

    async def get(self, *args: Any, **kwargs: Any) -> None:
        prefix = self.application.prefix
        if prefix and self.request.path == prefix:
            return self.redirect(f"{prefix}/?{self.request.query}".rstrip("?"))
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")  # it bears a token of its own
        nonce = number()
        secure(self._headers, nonce)
        self.write(head(self.application).replace(NONCE, nonce))
        await self.flush()
        session = await self.get_session()
        with set_curdoc(session.document):
            self.finish(rest(session, nonce))
        return None

    def send_error(self, status_code: int = 500, **facts: Any) -> None:
        """Where the head has gone out, the browser is told in words."""
        if self._headers_written and not self._finished:
            self.finish("</head><body><p>This page cannot be shown.</p></body></html>")
        else:
            super().send_error(status_code, **facts)


class Module(RequestHandler):
    """The module of one of our components, by its address."""

    def get(self, name: str) -> None:
        found = next((c for c in components() if module_name(c) == name), None)
        if found is None:
            return self.send_error(404)
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", KEPT)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.finish(found._render_esm())
        return None


class Thumbnail(RequestHandler):
    """The small picture of a system's run, by its slug."""

    def get(self, slug: str) -> None:
        try:
            path = dataset(f"thumbnails/{slug}.png")
        except BadInput:
            return self.send_error(404)
        self.set_header("Content-Type", "image/png")
        self.set_header("Cache-Control", "private, max-age=86400")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.finish(path.read_bytes())
        return None


HANDLERS: list[tuple[str, type[RequestHandler]]] = [
    (rf"/{PLACE}/([\w.-]+)", Module),
    (r"/thumbnails/([\w-]+)\.png", Thumbnail),
]


def hasten(application: Application) -> None:
    """Let `application` (a Bokeh server's) send its pages in two parts.

    Nor is there a script that brings a page into another's: nothing of ours asks for one, and
    the library writes a name from its address into it as it stands.
    """
    rules = application.wildcard_router.rules
    rules[:] = [rule for rule in rules if rule.target is not AutoloadJsHandler]
    for rule in rules:
        if rule.target is DocHandler:
            rule.target = Page


def head(application: Any) -> str:
    """The first part of every page of an application: styles and scripts, the same for all."""
    if HEAD not in application.settings:
        bundle = bundle_resources(None, Resources.from_bokeh(application.resources()))
        scripts = [str(url) for url in bundle.js_files]
        style = next(str(url) for url in bundle.css_files if f"/{SHEET.name}" in str(url))
        application.settings[HEAD] = template("head").render(
            styles=[str(url) for url in bundle.css_files],
            faces=faces(style),
            scripts=[url for url in scripts if not any(name in url for name in LEFT_OUT)],
            material=versioned(pmui.Page._render_esm(server=True)),
            nonce=NONCE,
        )
    return str(application.settings[HEAD])


def faces(style: str) -> list[tuple[str, str]]:
    """(weight, address) of each font file that our texts need, beside the components' `style`.

    That sheet's Roboto has a face for each of ten scripts, and chromium gets them one after the
    other until it comes to the Latin one, laying the page out anew after each.
    """
    folder = style.rsplit("/", 1)[0]
    found = re.findall(r"(roboto-latin-(\d+)-normal-\w+\.woff2)", SHEET.read_text())
    return [(weight, f"{folder}/{name}") for name, weight in found]


def rest(session: Any, nonce: str) -> str:
    """The second part of a page: what is its own, its scripts with the answer's number."""
    document = session.document
    document.template_variables["dist_url"] = LOCAL_DIST  # for what is added later, too
    for root in document.roots:
        patch_model_css(root, dist_url=LOCAL_DIST)
    item = RenderItem(token=session.token, roots=document.roots, use_for_title=False)
    return template("rest").render(
        document.template_variables,
        nonce=nonce,
        roots=list(item.roots),
        modules=modules(document.roots),
        files=LOCAL_DIST,
        item=item.to_json(),
    )


def components() -> Iterator[type[Component]]:
    """Every component of ours that a page may hold."""
    waiting = [Component]
    while waiting:
        of = waiting.pop()
        waiting.extend(of.__subclasses__())
        if of is not Component:
            yield of


@cache
def module_name(component: type[Component]) -> str:
    """The last part of a component's address: its name and the checksum of its module."""
    return _named(component.__name__, component._render_esm())


@cache
def _named(name: str, text: str) -> str:
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.js"


def versioned(address: str) -> str:
    """An address whose version the server knows as one: its answer may be kept for good."""
    return address if "?v=" in address else address.replace("?", "?v=", 1)


def by_address(view: Any, root: Model, changed: Any, old: Any) -> None:
    """Let a page's models name their modules, not carry them (Panel's hook on a built page)."""
    for model in changed._models[root.ref["id"]][0].references():
        if isinstance(model, AnyWidgetComponent) and model.bundle is None:
            address = f"./{PLACE}/{_named(model.class_name, model.esm)}"
            model.update(bundle="url", esm=address)
        elif isinstance(model, ReactiveESM) and model.bundle == "url":
            # The styles of the bundle are fonts, which the page's head brings.
            model.update(esm=versioned(model.esm), css_bundle=None)


def modules(roots: Any) -> list[str]:
    """The addresses of our components' modules on a built page."""
    found = (model for root in roots for model in root.references())
    return sorted({m.esm for m in found if isinstance(m, AnyWidgetComponent)})
