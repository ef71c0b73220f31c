"""The one gate of all routes: a known and allowed person, from a page of this server itself."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import JupyterHandler
from tornado.web import HTTPError

from workbench.jupyter.app_process import AppProcess

NEAR = ("none", "same-origin")  # what a browser says of a request that no other site caused


class Guarded(JupyterHandler):
    """Refuses, before anything of a route runs, whoever Jupyter does not know or allow.

    Jupyter's own `prepare` checks the Host header, and the XSRF cookie of what is not a GET.
    """

    action = "read"  # what Jupyter's authorizer is asked
    auth_resource = "workbench"

    def initialize(self, app: AppProcess, root: Path) -> None:
        self.app, self.root = app, root
        try:
            urlsplit(self.request.headers.get("Referer", ""))
        except ValueError:  # no address: Jupyter's log would fail of it, and this answer with it
            del self.request.headers["Referer"]

    async def prepare(self, **options: Any) -> None:  # type: ignore[override]
        await ensure_async(super().prepare(**options))  # type: ignore[arg-type]
        if self._finished:
            return
        if not self.current_user:
            raise HTTPError(403, "workbench: log in to Jupyter first")
        if not self.from_here():
            raise HTTPError(403, "workbench: asked by a page of another origin")
        allowed = self.authorizer.is_authorized(
            self, self.current_user, self.action, self.auth_resource
        )
        if not await ensure_async(allowed):  # type: ignore[arg-type]
            raise HTTPError(403, f"workbench: not allowed to {self.action}")

    @property
    def person(self) -> str:
        """A name for the user, the same for all their pages, that says nothing about them."""
        assert self.current_user is not None
        return sha256(self.current_user.username.encode("utf-8", "replace")).hexdigest()[:16]

    def from_here(self) -> bool:
        """Whether no page of another origin sent this; a browser says so by itself.

        A GET that starts a run changes something, so it is checked as a POST would be.
        """
        if self.get_origin() is None:
            return self.request.headers.get("Sec-Fetch-Site", "none") in NEAR
        return bool(self.check_origin())

    def skip_check_origin(self) -> bool:
        """Never: Jupyter would take any origin from whoever bears a token."""
        return False

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """One line of JSON, which the side bar shows."""
        fault = kwargs.get("exc_info", (None, None))[1]
        known = isinstance(fault, HTTPError) and fault.log_message
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"message": str(known or self._reason)}))
