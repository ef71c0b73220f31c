"""Another server is watched by what it publishes: metrics of vLLM and SGLang, cache events."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import numpy as np
import pytest
import zmq

from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Page
from engine.core.log import Log
from engine.core.run import Run
from widgets.views.latency.draw import VIEW
from widgets.views.latency.picture import picture, prepare
from workbench.attach import scrape as scrape_module
from workbench.attach.cache_events import CacheEvents
from workbench.attach.metrics import read
from workbench.attach.scrape import address, scrape
from workbench.attach.watch import Attached, watch
from workbench.cli.main import main
from workbench.live.counts import Counts
from workbench.pages.suggested_views import suggested_views

SGLANG = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",dp_rank="0"} 3
sglang:num_running_reqs{model_name="m",dp_rank="1"} 2
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m"} 0.25
# TYPE sglang:time_to_first_token_seconds histogram
sglang:time_to_first_token_seconds_bucket{le="0.1",model_name="m"} 1
sglang:time_to_first_token_seconds_bucket{le="+Inf",model_name="m"} 4
sglang:time_to_first_token_seconds_count{model_name="m"} 4
sglang:time_to_first_token_seconds_sum{model_name="m"} 9
"""


@contextmanager
def served(answers: Iterator[bytes | int]) -> Iterator[str]:
    """A server whose /metrics are `answers` in turn; a number is a status without a text."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = next(answers)
            self.send_response(answer if isinstance(answer, int) else 200)
            self.end_headers()
            self.wfile.write(b"" if isinstance(answer, int) else answer)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vllm() -> Iterator[bytes]:
    """Our own counts, which bear vLLM's names; each look finds two requests more."""
    counts = Counts("m")
    counts.of["first"].observe(900.0)  # before the watch: none of its business
    counts.running.set(3)
    while True:
        yield counts.text(None)
        counts.of["first"].observe(0.03)
        counts.of["first"].observe(0.3)
        counts.looked.inc(100)
        counts.hits.inc(40)
        counts.made.inc(10)


def watched(url: str, until: Callable[[Log], bool]) -> Log:
    """The log of a watch that was stopped once `until` held of it."""
    run = Run.start(watch, Attached(url=url, every=0.1))
    while not until(run.log) and not run.ended.wait(0.02):
        pass
    run.stop()
    return run.wait().log


def rated(log: Log) -> bool:
    return any(level.name == "prefix_hit_rate" for level in log.of(Level))


def test_a_server_of_vllms_names_is_watched():
    with served(vllm()) as url:
        log = watched(url, rated)
    levels = {(level.name, level.value) for level in log.of(Level)}
    assert {("running", 3.0), ("prefix_hit_rate", 0.4)} <= levels
    assert all(value > 0 for name, value in levels if name == "answer_tokens_per_second")
    bounds, counts = log.blobs["latency/time_to_first_token"]
    looks = counts[-1] / 2
    assert looks >= 1 and counts[bounds == 0.04] == looks and counts[bounds == 0.5] == 2 * looks
    assert log.opened is not None and log.opened.facts["server"] == "vllm"
    assert suggested_views(log) == ("levels", "latency")


def test_buckets_are_drawn_as_what_is_known():
    with served(vllm()) as url:
        log = watched(url, rated)
    fold = VIEW.fold()
    fold.blobs = log.blobs
    for event in log:
        fold.add(event)
    drawn = picture(prepare(fold.copy().frame()), log.duration, "")
    (plot,) = drawn.plots
    assert [reading.value for reading in plot.readings] == ["≤ 40 ms", "≤ 500 ms", "≤ 500 ms"]
    assert plot.lines[0].y[-1] == 1.0 and np.isfinite(plot.lines[0].x).all()


def test_sglangs_names_and_ranks_are_known():
    found = read(SGLANG)
    assert (found.server, found.model) == ("sglang", "m")
    assert found.gauges["running"] == {"0": 3.0, "1": 2.0}
    assert found.latencies["time_to_first_token"][1].tolist() == [1.0, 4.0]


def test_a_server_that_falls_silent_and_begins_anew_goes_on():
    texts = vllm()
    first, second = next(texts), next(texts)

    def answers() -> Iterator[bytes | int]:
        yield second
        yield 500
        while True:
            yield first  # fewer than before: it began anew

    with served(answers()) as url:
        log = watched(url, lambda log: len(log.of(Mark)) == 2)
    assert [mark.name for mark in log.of(Mark)] == ["silent", "back"]
    assert all(level.value >= 0 for level in log.of(Level))
    assert log.blobs["latency/time_to_first_token"][1][-1] == 1  # all that the new one tells


BOUND = 'vllm:num_requests_running 1\nvllm:time_to_first_token_seconds_bucket{le="NaN"} 1\n'


@pytest.mark.parametrize(
    "text", ["", "no metrics", "a 1\n", "vllm:num_requests_running{ 3\n", BOUND]
)
def test_other_texts_are_refused(text):
    with pytest.raises(BadInput, match="/metrics"):
        read(text)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000 /metrics"),
        ("https://a.example/vllm/v1", "https://a.example:443 /vllm/metrics"),
        ("http://[::1]:9/metrics", "http://[::1]:9 /metrics"),
    ],
)
def test_addresses(url, found):
    assert f"{address(url)} {address(url).path}" == found


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a", "http://", "http://a:b", "http://u:p@a", "http://[", "http://a b",
            "http://\u202ea", "http://" + "a" * 300],
)  # fmt: skip
def test_no_addresses(url):
    with pytest.raises(BadInput, match="write http://host:port"):
        address(url)


def test_a_server_that_is_not_there_is_a_line(capsys):
    assert main(["attach", "http://127.0.0.1:1", "--seconds", "1"]) == 2
    assert "does not answer" in capsys.readouterr().err


def test_values_that_are_none_are_left_out_and_nobody_warns(recwarn):
    for value in ("NaN", "+Inf", "1e308", "-1e308"):
        said = SGLANG.replace(" 0.25", f" {value}").replace("} 4\n", f"}} {value}\n")
        said += f'vllm:cache_config_info{{num_gpu_blocks="{"9" * 5000}"}} 1\n'
        found = read(said)
        assert set(found.gauges) == {"running"} and found.pages == 0
        bounds_K, counts_K = found.latencies["time_to_first_token"]
        assert np.isfinite(counts_K).all() and len(bounds_K) == 1
    assert not recwarn


@pytest.mark.parametrize("cut", [1, 150, 400])
def test_half_a_page_is_not_read_as_a_whole_one(cut):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def tell() -> None:
            line, _ = server.accept()
            with line:
                line.recv(4096)
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(SGLANG)}\r\n\r\n"
                line.sendall((head + SGLANG[:-cut]).encode())

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        with pytest.raises(BadInput, match="does not answer"):
            scrape(address(f"http://127.0.0.1:{server.getsockname()[1]}"))
        thread.join()


def test_a_head_that_never_ends_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(scrape_module, "TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def trickle() -> None:
            line, _ = server.accept()
            with suppress(OSError):
                while True:
                    line.sendall(b"H")
                    time.sleep(0.05)

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        with pytest.raises(BadInput, match="does not answer"):
            scrape(address(f"http://127.0.0.1:{server.getsockname()[1]}"))
        thread.join()


class Publisher:
    """vLLM's: batches as maps, or as the arrays of before."""

    def __init__(self, *, arrays: bool) -> None:
        self.arrays, self.number = arrays, 0
        self.line = zmq.Context.instance().socket(zmq.XPUB)
        self.port = self.line.bind_to_random_port("tcp://127.0.0.1")

    def send(self, *events: dict) -> None:
        told = [list(event.values()) if self.arrays else event for event in events]
        batch = [1.0, told, 0] if self.arrays else {"ts": 1.0, "events": told}
        self.raw(msgspec.msgpack.encode(batch))

    def raw(self, payload: bytes) -> None:
        self.line.send_multipart([b"", self.number.to_bytes(8, "big"), payload])
        self.number += 1


def stored(keys, above=None) -> dict:
    return {"type": "BlockStored", "block_hashes": keys, "parent_block_hash": above,
            "token_ids": [1] * 16 * len(keys), "block_size": 16}  # fmt: skip


@pytest.mark.parametrize("arrays", [False, True])
def test_cache_events_are_pages(arrays):
    told: list = []
    publisher = Publisher(arrays=arrays)
    reader = CacheEvents(f"tcp://127.0.0.1:{publisher.port}", told.append)
    try:
        publisher.line.recv()  # it has subscribed
        publisher.send(stored([b"a", b"b"]))
        publisher.send(stored([b"c"], b"b"), {"type": "BlockRemoved", "block_hashes": [b"c"]})
        publisher.raw(b"\xc1 no msgpack")
        publisher.raw(msgspec.msgpack.encode([1.0, [["BlockStored", [[1]], None, [], 16]]]))
        publisher.number += 2  # two are lost
        publisher.send(stored([7], b"a"))
        publisher.send({"type": "AllBlocksCleared"})
        while reader.last < publisher.number - 1:
            reader.take(1.0, 1.0)
    finally:
        reader.close()
        publisher.line.close(0)
    tree = [(e.page, e.start, e.parent) for e in told if type(e) is Page and e.state == "index"]
    assert tree == [(0, 0, -1), (1, 16, 0), (2, 32, 1), (2, 16, 0)]
    gone = [(e.page, e.why) for e in told if type(e) is Page and e.state == "free"]
    assert gone[0] == (2, "evicted") and {why for _, why in gone[1:]} == {"all cleared"}
    assert reader.missed == 2 and reader.unread == 2
    assert [mark.name for mark in told if type(mark) is Mark] == ["strange", "missed"]


def test_an_address_of_events_that_is_none_is_refused():
    with pytest.raises(BadInput, match="tcp://host:port"):
        CacheEvents("ipc:///tmp/socket", [].append)
    with pytest.raises(BadInput, match="tcp://host:port"):
        CacheEvents("tcp://nowhere", [].append)
