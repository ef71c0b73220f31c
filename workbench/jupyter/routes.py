"""What the side bar lists, as JSON: the systems of the catalogue, the runs of this server."""

import asyncio
from typing import Any

from workbench.jupyter.guarded import Guarded
from workbench.pages.shelf.run_files import run_files


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
