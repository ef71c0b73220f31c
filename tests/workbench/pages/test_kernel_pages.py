"""A kernel's pages: reached through the Jupyter server that started it, and in no other way."""

import asyncio
import json
import os
import re
import urllib.error
import urllib.request

import pytest

from engine.core.errors import BadInput
from tests.workbench.toy import TOY
from workbench.jupyter import kernels
from workbench.jupyter.kernels import kernel_file, reached, read, served_below, server_file, write
from workbench.jupyter.reached import SECRET
from workbench.notebook import open_study as notebook
from workbench.notebook import served_pages as notebook_pages
from workbench.notebook.open_study import OpenStudy, open_study
from workbench.notebook.served_pages import KernelPages
from workbench.session import study_session

NAME = "a-name-of-kernel-pages"


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "jupyter_runtime_dir", lambda: str(tmp_path))
    return tmp_path


@pytest.fixture
def pages(runtime, monkeypatch):
    """The pages of this process, as if a Jupyter server below a base address had started it."""
    write(server_file(os.getppid()), {"place": "/user/ann/workbench"})
    made = KernelPages()
    for module in (notebook, notebook_pages):
        monkeypatch.setattr(module, "kernel_pages", lambda: made)
    return made


def test_the_files_are_the_owner_s_alone_and_read_back(runtime):
    write(kernel_file(NAME), {"port": 4321, "secret": "s"})
    assert kernel_file(NAME).stat().st_mode & 0o777 == 0o600
    assert reached(NAME).port == 4321
    write(server_file(os.getppid()), {"place": "/user/ann/workbench"})
    assert served_below() == "/user/ann/workbench"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"port": "1", "secret": "s"}', '{"port": 70000, "secret": "s"}', "9"]
)
def test_a_file_that_is_none_leads_nowhere(runtime, text):
    kernel_file(NAME).write_text(text)
    assert reached(NAME) is None
    server_file(os.getppid()).write_text(text)
    assert served_below() == ""


@pytest.mark.parametrize("name", ["", "short", "../../etc/passwd-and-more", "a" * 65, "é" * 20])
def test_a_name_that_is_none_leads_nowhere(runtime, name):
    assert reached(name) is None


def test_a_link_or_a_long_file_is_not_read(runtime):
    (runtime / "elsewhere.json").write_text('{"port": 1, "secret": "s"}')
    kernel_file(NAME).symlink_to(runtime / "elsewhere.json")
    assert read(kernel_file(NAME)) == {}
    kernel_file(NAME).unlink()
    kernel_file(NAME).write_text('{"port": 1, "secret": "s"}' + " " * 5000)
    assert reached(NAME) is None


def test_only_the_jupyter_server_gets_an_answer(pages):
    session = study_session(TOY, TOY.config)
    place = pages.address(TOY, session)
    assert place.startswith(f"/user/ann/workbench/kernel/{pages.name}/study?name=")
    assert pages.address(TOY, session) == place
    server = reached(pages.name)
    answer = asyncio.run(server.ask(place))
    assert answer.code == 200 and b"<html" in answer.body and b"127.0.0.1" not in answer.body
    for headers in ({}, {SECRET: ""}, {SECRET: pages.secret[:-1]}):
        others = "attention", "attention-tiles/x/tile", "study/ws", "static/js/bokeh.js"
        for path in (place, "/", *(f"{pages.prefix}/{other}" for other in others)):
            asked = urllib.request.Request(f"http://127.0.0.1:{pages.port}{path}", headers=headers)
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(asked)
    session.close()


def test_a_kernel_s_pages_take_no_message_that_pages_do_not_send(pages):
    session = study_session(TOY, TOY.config)
    place, server = pages.address(TOY, session), reached(pages.name)

    async def answered(kind, content):
        page = await server.ask(place)
        token = re.search(rb'"token"\s*:\s*"([^"]+)"', page.body)[1].decode()
        line = await server.connect(place.replace("/study?", "/study/ws?"), ["bokeh", token])
        while "ACK" not in (await line.read_message()):  # nobody listens before
            pass
        for part in ({"msgid": "1", "msgtype": kind}, {}, content):
            await line.write_message(json.dumps(part))
        while (said := await line.read_message()) is not None:
            if "ERROR" in said:
                break
        line.close()
        return said

    event = {"kind": "RootAdded", "model": {"type": "object", "name": "Div", "id": "z1"}}
    assert asyncio.run(asyncio.wait_for(answered("PATCH-DOC", {"events": [event]}), 60))
    session.close()


def test_a_cell_shows_a_path_of_the_server_and_no_port(pages):
    shown = open_study("flover", live=True)
    text = shown._html()
    assert f'src="/user/ann/workbench/kernel/{pages.name}/study?name=' in text
    assert "127.0.0.1" not in text and "sandbox" not in text


def test_a_cell_shows_the_attention_of_its_run_where_a_server_does(pages, runtime):
    shown = OpenStudy(TOY, study_session(TOY, TOY.config), True, 400)
    inside = shown.attention("r0").object
    assert f'src="/user/ann/workbench/kernel/{pages.name}/attention?name=' in inside
    assert "request=r0" in inside
    answer = asyncio.run(reached(pages.name).ask(pages.attention(shown.study, shown.session)))
    assert answer.code == 200 and b"<html" in answer.body
    shown.live = False
    with pytest.raises(BadInput, match="Jupyter server"):
        shown.attention()


def test_without_the_extension_a_cell_shows_widgets_and_no_port(runtime, monkeypatch):
    import IPython.display

    seen = []
    monkeypatch.setattr(IPython.display, "display", lambda thing, **more: seen.append(thing))
    shown = open_study("flover", live=True)
    shown.session.driver = TOY.driver
    monkeypatch.setattr(type(shown), "widget", lambda self: "its widget")
    shown._ipython_display_()
    assert seen == ["its widget"]


def test_a_page_that_replays_is_nobody_s_origin():
    shown = open_study("flover", live=False, workload__count=2)
    assert 'sandbox="allow-scripts allow-downloads" style=' in shown._html()
