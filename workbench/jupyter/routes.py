"""What the side bar lists, as JSON: the systems of the catalogue, the runs of this server; and the
notebooks it makes."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tornado.web import HTTPError

from engine.core.errors import BadInput
from workbench.jupyter.guarded import Guarded
from workbench.pages.shelf.run_files import run_files

TOUR, TOUR_FILE = "tour", "00_tour.ipynb"


class CatalogueRoute(Guarded):
    """GET: every system as `workbench catalogue --json` gives it."""

    async def get(self) -> None:
        loop = asyncio.get_running_loop()
        self.finish({"systems": await loop.run_in_executor(None, systems)})


def systems() -> list[dict[str, Any]]:
    """Every system's row. The first call reads all studies, which takes a while."""
    from workbench.catalogue import catalogue  # not at the start of every Jupyter server

    return [entry.row() for entry in catalogue()]


class RunsRoute(Guarded):
    """GET: the run files below the server's root, newest first, and what the app holds now."""

    async def get(self) -> None:
        loop = asyncio.get_running_loop()
        files, complete = await loop.run_in_executor(None, run_files, self.root)
        held: list[dict[str, Any]] = await self.app.runs()
        self.finish({"files": files, "complete": complete, "held": held})


class NotebookRoute(Guarded):
    """GET: a notebook made for the study of that name, or the tour."""

    async def get(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            self.finish(await loop.run_in_executor(None, notebook, name))
        except BadInput as fault:
            raise HTTPError(404, str(fault)) from None


def notebook(name: str) -> dict[str, Any]:
    """The cells of a study's notebook as JSON, or of the tour. Raises BadInput for neither."""
    from workbench.catalogue import study
    from workbench.study_notebook import notebook_of

    if name != TOUR:
        return dict(notebook_of(study(name)))
    here = Path(__file__).resolve().parent.parent  # in the source tree beside it, else within
    folders = (here.parent / "notebooks", here / "_notebooks")
    place = next((folder / TOUR_FILE for folder in folders if (folder / TOUR_FILE).is_file()), None)
    if place is None:
        raise BadInput("tour: its notebook is not installed here")
    return dict(json.loads(place.read_text("utf-8")))
