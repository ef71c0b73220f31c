"""What a server says of itself: its models, its health, its counts, its OpenAPI document."""

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST
from tornado.web import HTTPError

from workbench.api import answers as answers
from workbench.api.body import Handler
from workbench.api.openapi import document


class Nothing(Handler):
    """Any other address."""

    def prepare(self) -> None:
        raise HTTPError(404, "no such address; GET /openapi.json tells those there are")


class Told(Handler):
    """What is read: HEAD asks for the same without its body (RFC 9110, section 9.1)."""

    get: Callable[..., None]

    def head(self, *names: str) -> None:
        self.get(*names)


class Models(Told):
    """`GET /v1/models`."""

    def get(self) -> None:
        self.write(answers.models(self.live))


class Model(Told):
    """`GET /v1/models/{id}`."""

    def get(self, name: str) -> None:
        if name != self.live.name:
            raise HTTPError(404, f"model {name[:80]!r}: not served; ask {self.live.name!r}")
        self.write(answers.model(self.live))


class Health(Told):
    """`GET /health`: 200 while the engine answers, 503 while it does not or stops."""

    def get(self) -> None:
        if not self.live.ready or self.live.draining:
            raise HTTPError(503, self.live.failure or "the engine is not ready, or stops")
        self.write({})


class Metrics(Told):
    """`GET /metrics`: Prometheus' text format."""

    def get(self) -> None:
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.write(self.live.counts.text(self.live.engine))


class Document(Told):
    """`GET /openapi.json`."""

    def get(self) -> None:
        self.write(document(self.live.name))
