"""A span for each answer of a live server, sent to an OpenTelemetry collector.

Names are those of OpenTelemetry's conventions for generative AI and, where these have none, vLLM's
(`gen_ai.latency.*`). A client's `traceparent` is the parent. Off unless an endpoint is given.
"""

import time
from typing import Any
from urllib.parse import urlsplit

from engine.core.errors import BadInput
from engine.inference.requests.request import Request
from workbench.live.ticket import Ticket, place_of

INSTALL = "pip install 'parallel-workbench[otel]'"


class Spans:
    """Ends of answers as spans. `exporter`: where they go (an opentelemetry SpanExporter)."""

    def __init__(self, model: str, exporter: Any, *, at_once: bool = False) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.model, self._context = model, TraceContextTextMapPropagator()
        self._provider = TracerProvider(resource=Resource.create({"service.name": "workbench"}))
        # A queue and a thread of the library's: the engine's thread waits for no collector.
        process = SimpleSpanProcessor(exporter) if at_once else BatchSpanProcessor(exporter)
        self._provider.add_span_processor(process)
        self._tracer = self._provider.get_tracer("workbench.live")

    def ended(self, ticket: Ticket, request: Request, reason: str) -> None:
        """An answer has ended: its span, from when it was asked."""
        now, wall = time.monotonic(), time.time_ns()
        sampling, first = request.sampling, ticket.first.get(place_of(request))
        told: dict[str, Any] = {
            "gen_ai.operation.name": "text_completion",
            "gen_ai.request.model": self.model,
            "gen_ai.response.model": self.model,
            "gen_ai.request.max_tokens": sampling.max_tokens,
            "gen_ai.request.temperature": sampling.temperature,
            "gen_ai.request.top_p": sampling.top_p,
            "gen_ai.response.finish_reasons": [reason],
            "gen_ai.usage.input_tokens": len(request.prompt),
            "gen_ai.usage.output_tokens": len(request.generated),
            "gen_ai.latency.e2e": now - ticket.asked,
        }
        if first is not None:
            told["gen_ai.latency.time_to_first_token"] = first - ticket.asked
        span = self._tracer.start_span(
            f"text_completion {self.model}",
            context=self._context.extract({"traceparent": ticket.parent}),
            attributes=told,
            start_time=wall - int(1e9 * (now - ticket.asked)),
        )
        span.end(wall)

    def close(self) -> None:
        """Send what has not been sent."""
        self._provider.shutdown()


def spans_to(endpoint: str, model: str) -> Spans:
    """Spans sent to `endpoint`, an OTLP collector's http(s)://host:port. Raises BadInput."""
    try:
        parts = urlsplit(endpoint)
        found = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of brackets, of a port that is none
        found = None
    if not found:
        raise BadInput(f"--otlp {endpoint!r}: not an address; write http://host:4318")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise BadInput(f"--otlp: OpenTelemetry is not installed; {INSTALL}") from None
    where = endpoint if parts.path.strip("/") else f"{endpoint.rstrip('/')}/v1/traces"
    return Spans(model, OTLPSpanExporter(endpoint=where))
