"""Each answer of a live server is a span for OpenTelemetry, under the client's own."""

import time

import numpy as np
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from engine.core.errors import BadInput
from engine.inference.requests.request import Request, sampling
from workbench.live.counts import Counts
from workbench.live.spans import Spans, spans_to
from workbench.live.ticket import Ticket

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_an_answer_is_a_span_under_its_asker():
    heard = InMemorySpanExporter()
    counts = Counts("m", Spans("m", heard, at_once=True))
    request = Request(np.zeros(3, np.int32), sampling(max_tokens=7, temperature=0.5), id="a")
    ticket = Ticket(request, lambda piece: None, 0, PARENT)
    before = time.time_ns()
    ticket.asked -= 2.0
    counts.token(ticket, request)
    counts.ended(ticket, request, "length")
    (span,) = heard.get_finished_spans()
    told = dict(span.attributes or {})
    assert span.parent is not None and f"{span.parent.span_id:x}" == "b7ad6b7169203331"
    assert told["gen_ai.usage.input_tokens"] == 3
    assert told["gen_ai.request.max_tokens"] == 7
    assert told["gen_ai.response.finish_reasons"] == ("length",)
    assert 2.0 <= told["gen_ai.latency.time_to_first_token"] <= told["gen_ai.latency.e2e"]
    assert span.start_time is not None and span.start_time <= before - 1_900_000_000
    counts.close()


def test_a_parent_that_is_none_is_left_out():
    heard = InMemorySpanExporter()
    counts = Counts("m", Spans("m", heard, at_once=True))
    request = Request(np.zeros(3, np.int32), sampling(), id="a")
    counts.ended(Ticket(request, lambda piece: None, 0, "no such thing"), request, "abort")
    (span,) = heard.get_finished_spans()
    assert span.parent is None
    assert "gen_ai.latency.time_to_first_token" not in dict(span.attributes or {})


NONE = ("collector:4318", "ftp://a", "http://", "http://[::1", "http://[a]:1", "http://a:b")


@pytest.mark.parametrize("endpoint", [*NONE, "http://a:99999", "http://a:0", "//a:1"])
def test_an_endpoint_that_is_none_is_one_line(endpoint):
    with pytest.raises(BadInput, match="--otlp"):
        spans_to(endpoint, "m")
