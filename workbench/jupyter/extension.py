"""What a Jupyter server loads at its start: routes below its base address; nothing runs yet."""

import atexit
import os
from pathlib import Path
from typing import Any

from jupyter_server.utils import url_path_join

from workbench.jupyter.app_process import AppProcess
from workbench.jupyter.guarded import Guarded
from workbench.jupyter.kernels import NAME, forget, server_file, write
from workbench.jupyter.proxy import AppPage, AppSocket
from workbench.jupyter.routes import CatalogueRoute, NotebookRoute, RunsRoute

PLACE = "workbench"  # all routes lie below it
ROUTES: tuple[tuple[str, type[Guarded]], ...] = (
    ("api/catalogue", CatalogueRoute),
    ("api/runs", RunsRoute),
    (r"api/notebook/(?P<name>[a-z0-9][a-z0-9-]{0,80})", NotebookRoute),
    (r"app(?:/|/.*/)ws", AppSocket),
    (r"app(?:/.*)?", AppPage),
    (rf"kernel/(?P<name>{NAME.pattern})(?:/|/.*/)ws", AppSocket),
    (rf"kernel/(?P<name>{NAME.pattern})(?:/.*)?", AppPage),
)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "workbench.jupyter"}]


def _load_jupyter_server_extension(server: Any) -> None:
    """Add the routes to `server`; the app's own process starts with the first page asked for."""
    base = server.web_app.settings["base_url"]
    root = Path(server.contents_manager.root_dir or server.root_dir)
    app = AppProcess(url_path_join(base, PLACE, "app"), root)
    given: dict[str, Any] = {"app": app, "root": root}
    routes = [(url_path_join(base, PLACE, place), route, given) for place, route in ROUTES]
    server.web_app.add_handlers(".*$", routes)
    said = server_file(os.getpid())
    write(said, {"place": url_path_join(base, PLACE)})
    atexit.register(forget, said)
    server.log.info("workbench: studies and runs at %s", url_path_join(base, PLACE, "app/"))
