"""The gate: every route of the app and of the API, against everyone who may not enter."""

import asyncio
import http.client
import re
import threading
from contextlib import contextmanager

import pytest
from tornado.httpserver import HTTPServer
from tornado.web import RequestHandler

from engine.core.errors import BadInput
from tests.workbench.toy_engine import toy_live
from workbench.api.access import Access, access
from workbench.api.handlers import application
from workbench.api.server import address_of, free_port
from workbench.cli.app import _token, app_rules
from workbench.pages.app import make_server
from workbench.pages.shelf.shelf import Shelf

TOKEN = "a-token-of-many-letters"
PAGES = (
    "", "live", "plan", "predict", "design", "serve", "attach", "catalogue", "study", "roofline",
    "compare", "response", "embed", "lecture", "runs", "run", "attention", "replica",
)  # fmt: skip
FILES = (
    "static/js/bokeh.min.js", "static/extensions/panel/x.js", "favicon.ico", "components/x.js",
    "modules/x.js", "attention-tiles/x/tile", "thumbnails/flover.png",
)  # fmt: skip
BELOW = ("metadata", "autoload.js", "static/js/x.js")
API = (
    "v1/models", "v1/models/toy", "v1/completions", "v1/chat/completions", "v1/responses",
    "v1/embeddings", "v1/else", "metrics", "tokenize", "detokenize", "openapi.json",
)  # fmt: skip
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "bokeh, e30",
}


def below(page, place):
    return f"{page}/{place}" if page else place


SOCKETS = tuple(below(page, "ws") for page in PAGES)
PLAIN = (
    *PAGES, *FILES, *API, "static/", "nowhere", "study/",
    *(below(page, place) for page in PAGES for place in BELOW),
)  # fmt: skip


@contextmanager
def answering(make):
    """Runs what `make` gives (a tornado application, or a Bokeh server) in a thread; its port."""
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), {}

    async def serve():
        port = found["port"] = free_port()
        made = make(port)
        if isinstance(made, tuple):
            made, found["routes"] = made
            found["stop"] = made.stop
            made.start()
        else:
            server = HTTPServer(made)
            server.listen(port, "127.0.0.1")
            found["stop"], found["routes"] = server.stop, routes_of(made)
        ready.set()
        await over.wait()
        found["stop"]()

    def run():
        try:
            loop.run_until_complete(serve())
        except Exception as fault:
            found["fault"] = fault
        ready.set()

    over = asyncio.Event()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(300) and "fault" not in found, found
    try:
        yield found["port"], found["routes"]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(20)


def routes_of(application):
    return [rule.matcher.regex.pattern for rule in application.wildcard_router.rules]


def app(token):
    def make(port):
        server = make_server(port, live, Shelf(), access("127.0.0.1", port, token))
        return server, routes_of(server._tornado)

    live = toy_live()
    return make


@pytest.fixture(scope="module")
def closed():
    """The app behind a token; its port and its routes."""
    with answering(app(TOKEN)) as found:
        yield found


@pytest.fixture(scope="module")
def open_app():
    """The app as it is on loopback."""
    with answering(app("")) as found:
        yield found


@pytest.fixture(scope="module")
def bare():
    """The API without pages."""
    live = toy_live()
    with answering(lambda port: application(live, access("127.0.0.1", port, TOKEN))) as found:
        yield found
    live.close()


def ask(port, place, headers, method="GET"):
    """Status and headers of the answer."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        line.request(method, f"/{place}", headers=headers)
        answer = line.getresponse()
        return answer.status, dict(answer.getheaders())
    finally:
        line.close()


def other_sites(port):
    """What another site can make a browser send, by name."""
    host = f"127.0.0.1:{port}"
    origins = {
        "wrong origin": "http://evil.example",
        "suffix origin": f"http://evil-{host}",
        "below an evil domain": f"http://{host}.evil.example",
        "evil subdomain": f"http://evil.{host}",
        "localhost as a prefix": f"http://localhost.evil:{port}",
        "evil-localhost": f"http://evil-localhost:{port}",
        "other port": "http://127.0.0.1:1",
        "port with more digits": f"http://{host}1",
        "user in it": f"http://{host}@evil.example",
        "ours as a path": f"http://evil.example/http://{host}",
        "other scheme": f"file://{host}",
        "null origin": "null",
        "no end of a bracket": "http://[::1",
        "empty": "",
    }
    hosts = {
        "rebinding host": f"evil.example:{port}",
        "rebinding host without port": "evil.example",
        "host with a suffix": f"127.0.0.1.evil.example:{port}",
        "host of another port": "127.0.0.1:1",
        "host without its port": "127.0.0.1",
    }
    wrong = {name: {"Origin": origin} for name, origin in origins.items()}
    wrong |= {name: {"Host": host} for name, host in hosts.items()}
    picture = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    wrong["a picture there"] = {**picture, "Sec-Fetch-Dest": "image"}
    frame = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}
    wrong["a frame there"] = {**frame, "Sec-Fetch-Dest": "iframe"}
    return wrong


def bearers(token):
    """Those without the right token, by name."""
    name, value = Access(frozenset(), token).cookie()
    return {
        "no token": {},
        "wrong token": {"Authorization": "Bearer " + "x" * len(token)},
        "part of the token": {"Authorization": f"Bearer {token[:-1]}"},
        "more than the token": {"Authorization": f"Bearer {token}x"},
        "another kind": {"Authorization": f"Basic {token}"},
        "the token as a cookie": {"Cookie": f"{name}={token}"},
        "part of the cookie": {"Cookie": f"{name}={value[:-1]}"},
        "no cookie": {"Cookie": f"{name}="},
        "the cookie of an older token": {"Cookie": "=".join(Access(frozenset(), "old").cookie())},
        "letters beyond ASCII": {"Authorization": "Bearer é"},
    }


@pytest.mark.parametrize("served, places", [("closed", PLAIN), ("bare", API), ("open_app", ())])
def test_no_route_is_left_out(request, served, places):
    """Each pattern that the server knows has at least one address among those tried here."""
    port, routes = request.getfixturevalue(served)
    tried = [f"/{place}" for place in ("health", *(places or PLAIN), *SOCKETS)]
    assert routes and not [r for r in routes if not any(re.match(r, place) for place in tried)]


@pytest.mark.parametrize("place", (*PLAIN, *SOCKETS))
def test_without_the_token_no_route_of_the_app_answers(closed, place):
    port, _ = closed
    more = UPGRADE if place in SOCKETS else {}
    for name, headers in bearers(TOKEN).items():
        assert ask(port, place, {**more, **headers})[0] == 401, name
    for wrong in ("", "x" * len(TOKEN), TOKEN[:-1], f"{TOKEN}&token={TOKEN}"):
        assert ask(port, f"{place}?token={wrong}", more)[0] == 401, wrong


@pytest.mark.parametrize("place", (*PLAIN, *SOCKETS))
def test_other_sites_are_refused_on_every_route_whatever_they_bear(closed, open_app, place):
    more = UPGRADE if place in SOCKETS else {}
    for name, headers in other_sites(closed[0]).items():
        bearing = {**more, "Authorization": f"Bearer {TOKEN}", **headers}
        assert ask(closed[0], place, bearing)[0] == 403, name
        assert ask(closed[0], f"{place}?token={TOKEN}", {**more, **headers})[0] == 403, name
    for name, headers in other_sites(open_app[0]).items():
        assert ask(open_app[0], place, {**more, **headers})[0] == 403, name


@pytest.mark.parametrize("place", API)
def test_the_api_alone_has_the_same_gate(bare, place):
    port, _ = bare
    for method in ("GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"):
        for name, headers in bearers(TOKEN).items():
            assert ask(port, place, headers, method)[0] == 401, (name, method)
        for name, headers in other_sites(port).items():
            bearing = {"Authorization": f"Bearer {TOKEN}", **headers}
            assert ask(port, place, bearing, method)[0] == 403, (name, method)


def test_who_may_enter_does(closed, open_app):
    """The checks above would hold for a server that refuses everyone."""
    port, _ = closed
    ours = {"Authorization": f"Bearer {TOKEN}", "Origin": f"http://localhost:{port}"}
    assert ask(port, "v1/models", ours)[0] == 200
    assert ask(port, "static/js/bokeh.min.js", ours)[0] == 200
    assert ask(open_app[0], "static/js/bokeh.min.js", {})[0] == 200
    assert ask(open_app[0], "nowhere", {})[0] == 404
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    link = {**followed, "Sec-Fetch-Dest": "document"}
    assert ask(open_app[0], "static/js/bokeh.min.js", link)[0] == 200


def test_a_browser_enters_by_the_printed_address_and_is_known_from_then_on(closed):
    port, _ = closed
    status, headers = ask(port, f"study?slug=flover&token={TOKEN}&theme=dark", {})
    assert status == 302 and headers["Location"] == "/study?slug=flover&theme=dark"
    cookie = headers["Set-Cookie"]
    assert TOKEN not in cookie and "HttpOnly" in cookie and "SameSite=Lax" in cookie
    known = {"Cookie": cookie.split(";")[0]}
    assert ask(port, "v1/models", known)[0] == 200
    assert ask(port, "v1/models", {**known, "Origin": "http://evil.example"})[0] == 403


def test_the_way_in_leads_nowhere_else(closed):
    for place in ("/evil.example/", "\\evil.example", "/\\evil.example"):
        status, headers = ask(closed[0], f"{place}?token={TOKEN}", {})
        assert status == 302 and re.match(r"/[^/\\]", headers["Location"]), headers["Location"]


def test_a_route_added_later_is_closed_too():
    class Open(RequestHandler):
        def get(self):
            self.finish("secret")

    def make(port):
        made = application(live, access("127.0.0.1", port, TOKEN))
        made.add_handlers(".*$", [(r"/later", Open)])
        return made

    live = toy_live()
    with answering(make) as (port, _):
        assert ask(port, "later", {})[0] == 401
        assert ask(port, "later", {"Authorization": f"Bearer {TOKEN}"})[0] == 200
    live.close()


def test_beyond_this_machine_the_app_makes_a_token_of_its_own():
    made = [app_rules("0.0.0.0", 5006) for _ in range(2)]
    assert all(len(rules.token) >= 24 for rules in made) and made[0].token != made[1].token
    assert app_rules("127.0.0.1", 5006).token == ""
    assert app_rules("127.0.0.1", 5006, TOKEN).token == TOKEN
    assert "box:5006" in app_rules("0.0.0.0", 5006, "", ("box:5006",)).hosts
    assert not any(host.startswith("0.0.0.0") for host in made[0].hosts)
    assert address_of("0.0.0.0", 5006).removeprefix("http://").lower() in made[0].hosts
    with pytest.raises(BadInput, match="at least 16"):
        app_rules("0.0.0.0", 5006, "short")


def test_the_printed_address_bears_the_token():
    assert _token("", TOKEN) == f"/?token={TOKEN}"
    assert _token("/run?file=a.run", TOKEN) == f"&token={TOKEN}"
    assert _token("/run", "") == ""
