"""The routes in a Jupyter server: whom they refuse, and the app that only it can reach."""

import asyncio
import http.client
import json
import re
import socket
import time
import urllib.error
import urllib.request

import pytest

from tests.ui.lab import running
from tests.workbench.jupyter import attacks
from workbench.api.server import free_port
from workbench.jupyter.app_process import AppProcess
from workbench.jupyter.extension import ROUTES
from workbench.jupyter.guarded import Guarded
from workbench.jupyter.kernels import kernel_file, write
from workbench.jupyter.reached import SECRET

BASE = "/user/ann"
KERNEL = "a-name-of-kernel-pages"
PAGES = (
    "api/catalogue",
    "api/runs",
    "api/notebook/tour",
    "app",
    "app/",
    "app/study?slug=flover",
    "app/static/js/bokeh.js",
    f"kernel/{KERNEL}/study?name=x",
    f"kernel/{KERNEL}",
)
SOCKETS = ("app/ws", "app/study/ws", f"kernel/{KERNEL}/study/ws")
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(folder):
    """A Jupyter server below a base address, as a hub runs it; gives host:port and token."""
    (folder / "work").mkdir()
    (folder / "work/first.run").write_bytes(b"PAR1")
    words = "--ServerApp.jpserver_extensions={'workbench.jupyter': True}"
    with running(folder, BASE + "/", "jupyter_server", words) as (address, token):
        yield address.removeprefix("http://").removesuffix(BASE), token


def asked(host, place, method="GET", **headers):
    """Status and body of one request; `headers` with _ for -."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    line = http.client.HTTPConnection(host, timeout=900)
    try:
        line.request(method, f"{BASE}/workbench/{place}", headers=sent)
        answer = line.getresponse()
        return answer.status, b"" if answer.status == 101 else answer.read()
    finally:
        line.close()


def wrong_ways(host, token):
    """What a stranger would try, by name, as headers."""
    name, port = host.split(":")
    good = f"token {token}"
    wrong = {
        "no token": {},
        "wrong token": {"Authorization": "token " + "0" * len(token)},
        "part of the token": {"Authorization": good[:-1]},
        "another kind": {"Authorization": "Basic " + token},
        "rebinding host": {"Authorization": good, "Host": f"evil.example:{port}"},
        "other site": {"Authorization": good, "Sec-Fetch-Site": "cross-site"},
    }
    for case, origin in {
        "wrong origin": "http://evil.example",
        "suffix origin": f"http://evil.{host}",
        "prefix origin": f"http://{host}.evil.example",
        "host is a prefix": f"http://{name}.evil.example:{port}",
        "other port": f"http://{name}:1",
        "null origin": "null",
    }.items():
        wrong[case] = {"Authorization": good, "Origin": origin}
    return wrong


def test_every_route_is_of_the_guarded_kind_and_asked_below():
    assert all(issubclass(route, Guarded) for _, route in ROUTES)
    for pattern, _ in ROUTES:
        places = [place.partition("?")[0] for place in (*PAGES, *SOCKETS)]
        assert any(re.fullmatch(pattern, place) for place in places), pattern


def test_strangers_are_refused_everywhere(server):
    host, token = server
    for case, headers in wrong_ways(host, token).items():
        for place in PAGES:
            assert asked(host, place, **headers)[0] == 403, (case, place)
        for place in SOCKETS:
            assert asked(host, place, **headers, **UPGRADE)[0] == 403, (case, place)


def test_what_is_refused_says_why_in_one_line(server):
    said = json.loads(asked(server[0], "api/runs")[1])
    assert said == {"message": "workbench: log in to Jupyter first"}


def test_nothing_can_be_posted(server):
    host, token = server
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for place in PAGES:
            assert asked(host, place, method)[0] == 403  # no XSRF token, no login
            assert asked(host, place, method, Authorization=f"token {token}")[0] == 405


def test_a_cookie_without_its_xsrf_token_posts_nothing(server):
    host, token = server
    line = http.client.HTTPConnection(host, timeout=900)
    line.request("GET", f"{BASE}/workbench/api/runs", headers={"Authorization": f"token {token}"})
    answer = line.getresponse()
    answer.read()
    cookie = (answer.getheader("Set-Cookie") or "").split(";")[0]
    assert cookie.startswith("username-")
    assert asked(host, "api/runs", Cookie=cookie)[0] == 200
    assert asked(host, "api/runs", "POST", Cookie=cookie)[0] == 403
    line.close()


def test_the_known_get_the_catalogue_and_the_runs(server):
    host, token = server
    known = {"Authorization": f"token {token}", "Origin": f"http://{host}"}
    status, body = asked(host, "api/catalogue", **known)
    systems = json.loads(body)["systems"]
    assert status == 200 and any(s["slug"] == "flover" and s["built"] for s in systems)
    runs = json.loads(asked(host, "api/runs", **known)[1])
    assert [file["path"] for file in runs["files"]] == ["first.run"]
    assert runs["held"] == [] and runs["complete"]


def test_the_known_get_notebooks_of_studies_and_the_tour(server):
    host, token = server
    known = {"Authorization": f"token {token}", "Origin": f"http://{host}"}
    for name, says in (("tour", "open_study"), ("flover", 'open_study("flover"')):
        status, body = asked(host, f"api/notebook/{name}", **known)
        cells = json.loads(body)["cells"]
        assert status == 200 and any(says in "".join(cell["source"]) for cell in cells)
    status, body = asked(host, "api/notebook/no-such-system", **known)
    assert status == 404 and "no such system" in json.loads(body)["message"]
    assert asked(host, "api/notebook/..%2Fsetup", **known)[0] == 404


def test_the_app_answers_below_the_base_address(server):
    host, token = server
    known = {"Authorization": f"token {token}", "Origin": f"http://{host}"}
    status, page = asked(host, "app/catalogue?frame=lab", **known)
    assert status == 200 and b"static/" in page
    assert b"127.0.0.1" not in page  # no second address in it
    assert asked(host, "app/ws", **known, **UPGRADE)[0] == 101
    assert asked(host, "app/runs.json", **known)[0] == 200
    assert asked(host, "app/../api/runs", **known)[0] == 404
    assert asked(host, "app/../../../api/contents", **known)[0] == 404


def test_a_page_stands_in_frames_of_its_own_server_alone(server):
    host, token = server
    known = {"Authorization": f"token {token}", "Sec-Fetch-Dest": "iframe"}
    own, other = f"http://{host}{BASE}/lab", f"http://{host}/user/bob/lab"
    assert asked(host, "app/catalogue", **known, Referer=own)[0] == 200
    for headers in ({"Referer": other}, {"Referer": f"{own[:-5]}e/lab"}, {}):
        assert asked(host, "app/catalogue", **known, **headers)[0] == 403, headers
    line = http.client.HTTPConnection(host, timeout=900)
    line.request("GET", f"{BASE}/workbench/app/catalogue", headers={**known, "Referer": own})
    policy = line.getresponse().getheader("Content-Security-Policy")
    line.close()
    assert policy is not None and policy.endswith("frame-ancestors 'self'")
    assert "object-src 'none'" in policy and "script-src 'self' 'nonce-" in policy


def test_a_file_that_a_script_imports_still_wants_a_known_person(server):
    host, token = server
    imported = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}
    place = "app/static/js/bokeh.js"
    assert asked(host, place, **imported)[0] == 403
    assert asked(host, place, **imported, Authorization=f"token {token}")[0] == 200


def test_pages_of_a_kernel_that_has_gone_are_said_to_have_gone(server, folder):
    host, token = server
    status, body = asked(host, f"kernel/{KERNEL}/study?name=x", Authorization=f"token {token}")
    assert status == 404 and "run the notebook's cell again" in json.loads(body)["message"]
    known = {"Authorization": f"token {token}", "Origin": f"http://{host}"}
    assert asked(host, f"kernel/{KERNEL}/study/ws", **known, **UPGRADE)[0] == 404
    # One that was killed leaves its file, and nobody listens there.
    left = folder / "JUPYTER_RUNTIME_DIR" / kernel_file(KERNEL).name
    write(left, {"port": free_port(), "secret": "s"})
    status, body = asked(host, f"kernel/{KERNEL}/study?name=x", Authorization=f"token {token}")
    left.unlink()
    assert status == 502 and "run the notebook's cell again" in json.loads(body)["message"]


def sent(host, *parts):
    """What comes back for these bytes, sent one after the other's answer, until the server ends."""
    name, port = host.split(":")
    got = b""
    with socket.create_connection((name, int(port)), timeout=60) as line:
        try:
            for part in parts[:-1]:
                line.sendall(part)
                while b"\r\n\r\n" not in got:
                    got += line.recv(65536) or b"\r\n\r\n"
            line.sendall(parts[-1])
            line.shutdown(socket.SHUT_WR)  # nothing more comes: who waits for a body waits no more
            while more := line.recv(1 << 20):
                got += more
        except OSError:  # it hung up
            pass
    return got


def logged(folder):
    """What our own code raised, by the server's log."""
    said = (folder / "said.txt").read_text(errors="replace")
    return [
        part for part in said.split("Traceback")[1:] if re.search(r"/workbench/\w+/\w+\.py", part)
    ]


def test_requests_that_nobody_sends_are_refused(server, folder, full):
    host, token = server
    about = {"own": f"http://{host}", "port": host.split(":")[1], "base": BASE, "token": token}
    warm = time.monotonic() + 900
    while asked(host, "app/", Authorization=f"token {token}")[0] >= 500 and time.monotonic() < warm:
        pass
    for what, request in attacks.requests(7, 3000 if full else 120, **about, kernel=KERNEL):
        answer = sent(host, request)
        status = answer.split(b" ", 2)[1:2]
        assert not status or status[0] < b"500", what
        assert b"root:x" not in answer and b"\nSet-Cookie:a" not in answer, what
    assert not logged(folder)


def test_messages_that_no_page_sends_end_nothing_but_their_own_socket(server, folder, full):
    host, token = server
    known = {"Authorization": f"token {token}", "Origin": f"http://{host}"}
    upgrade = ""
    for number, (what, data) in enumerate(attacks.frames(7, 1000 if full else 40)):
        if number % 100 == 0:  # a page's token is good for five minutes
            page = asked(host, "app/catalogue", **known)[1]
            found = re.search(rb'"token"\s*:\s*"([^"]+)"', page)[1].decode()
            told = known | UPGRADE | {"Host": host, "Sec-WebSocket-Protocol": f"bokeh, {found}"}
            lines = [f"GET {BASE}/workbench/app/catalogue/ws HTTP/1.1"]
            upgrade = "\r\n".join([*lines, *(f"{k}: {v}" for k, v in told.items()), "", ""])
        assert b" 101 " in sent(host, upgrade.encode(), data)[:20], what
    assert asked(host, "app/runs.json", **known)[0] == 200
    assert not logged(folder)


def test_without_the_secret_the_app_answers_nobody(tmp_path):
    async def ask():
        app = AppProcess("/user/ann/workbench/app", tmp_path)
        assert await app.runs() == []  # not started for a mere look
        answers = await asyncio.gather(*(app.ask(f"{app.prefix}/runs.json") for _ in range(3)))
        return app, [json.loads(answer.body) for answer in answers]

    app, answers = asyncio.run(ask())
    try:
        assert answers == [{"runs": []}] * 3  # one process, however many ask at once
        here = f"http://127.0.0.1:{app.port}"
        for place in ("/", app.prefix + "/", f"{app.prefix}/study/ws", f"{app.prefix}/runs.json"):
            for headers in ({}, {SECRET: ""}, {SECRET: app.secret[:-1]}, {SECRET: "é"}, UPGRADE):
                with pytest.raises(urllib.error.HTTPError, match="403"):
                    latin = {k: v.encode() for k, v in headers.items()}
                    urllib.request.urlopen(urllib.request.Request(here + place, headers=latin))
    finally:
        app.child.stdin.close()
        app.child.wait(300)
    assert app.child.returncode == 0  # it ends when its parent's end of the pipe does


def test_an_app_that_cannot_start_is_one_line(tmp_path):
    class Broken(AppProcess):
        def _begin(self):
            raise OSError("it gave no port")

    app = Broken("/x", tmp_path)
    with pytest.raises(OSError, match="did not start; the Jupyter server's log says why"):
        asyncio.run(app.ask("/x/"))
