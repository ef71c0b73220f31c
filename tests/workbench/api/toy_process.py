"""Main function of an engine's process whose model is a toy."""

import sys
from functools import partial

from tornado.netutil import bind_unix_socket

from tests.workbench.toy_engine import toy_live
from workbench.api import engine_process
from workbench.api.access import access
from workbench.api.server import serve_api


def engine():
    told = engine_process.asked()
    if told["fault"]:
        engine_process.answer(fault=told["fault"])
        return
    live = toy_live(seconds=0.1)
    live.wait()
    sys.stdout.write("what anything prints is no answer\n")
    serve_api(
        live, access("127.0.0.1", told["port"]),
        lambda server: server.add_socket(bind_unix_socket(told["socket"])),
        partial(engine_process.answer, name=live.name), 60.0, engine_process.until_left,
    )  # fmt: skip
    live.close()
