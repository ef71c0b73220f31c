"""Metrics of another server, told in our words: Prometheus text of vLLM, SGLang or our own server.

Names as vLLM (vllm/v1/metrics/loggers.py) and SGLang (srt/metrics/collector.py) publish them; of
several the first that is there counts, which is the newest.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from engine.core.errors import BadInput

GAUGES = {
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "cache_use": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
}
COUNTERS = {
    "prompt_tokens": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total"),
    "answer_tokens": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "looked_up": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "preemptions": ("vllm:num_preemptions_total", "sglang:num_retracted_reqs_total"),
}
# Of a request's mean first; what servers published before counts every gap between two tokens.
LATENCIES = {
    "time_to_first_token": (
        "vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    "time_per_output_token": (
        "vllm:request_time_per_output_token_seconds", "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds", "sglang:inter_token_latency_seconds",
        "sglang:time_per_output_token_seconds"),
    "end_to_end": ("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
}  # fmt: skip
CACHE = "vllm:cache_config_info"  # whose labels are the cache's shape
ENGINES = ("engine", "dp_rank")  # labels that tell engines of one server apart
MOST_ENGINES = 64
MOST = 1e15  # of a value: requests, tokens or seconds
DIGITS = 15  # of a whole number in a label


@dataclass
class Metrics:
    """What a server said at one moment.

    `gauges`, `counters`: name -> engine -> value. `latencies`: kind -> (bounds_K of buckets in
    seconds, the last infinite; counts_K of requests at most so slow, since the server's start).
    """

    server: str = ""
    model: str = ""
    pages: int = 0
    page_size: int = 0
    gauges: dict[str, dict[str, float]] = field(default_factory=dict)
    counters: dict[str, dict[str, float]] = field(default_factory=dict)
    latencies: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)


def read(text: str) -> Metrics:
    """The metrics in a Prometheus text. Raises BadInput where it is none, or of neither server."""
    try:
        samples = _by_name(text)
    except Exception as fault:  # the parser raises whatever its text made it stumble over
        raise BadInput(f"/metrics: not Prometheus text ({type(fault).__name__})") from None
    found = Metrics()
    for names, into in ((GAUGES, found.gauges), (COUNTERS, found.counters)):
        for name, choices in names.items():
            if values := _first(samples, choices):
                into[name] = _by_engine(values)
    for kind, choices in LATENCIES.items():
        if buckets := _first(samples, tuple(f"{name}_bucket" for name in choices)):
            found.latencies[kind] = _histogram(buckets)
    if not found.gauges and not found.counters:
        raise BadInput("/metrics: neither vLLM's names nor SGLang's (vllm:…, sglang:…) are there")
    one = next(iter(_first(samples, (*GAUGES["running"], *COUNTERS["answer_tokens"]))), None)
    if one is not None:
        found.server, found.model = one.name.partition(":")[0], one.labels.get("model_name", "")
    for shape in samples.get(CACHE, ()):
        found.pages += _whole(shape.labels.get("num_gpu_blocks"))
        found.page_size = _whole(shape.labels.get("block_size"))
    return found


def _by_name(text: str) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if abs(sample.value) <= MOST:  # neither NaN, which a metric without a value has
                found.setdefault(sample.name, []).append(sample)
    return found


def _first(samples: dict[str, list[Sample]], names: Iterable[str]) -> list[Sample]:
    return next((samples[name] for name in names if name in samples), [])


def _by_engine(samples: list[Sample]) -> dict[str, float]:
    """The sum of each engine's values."""
    found: dict[str, float] = {}
    for sample in samples:
        engine = next((sample.labels[name] for name in ENGINES if name in sample.labels), "0")
        found[engine] = found.get(engine, 0.0) + float(sample.value)
    return dict(list(found.items())[:MOST_ENGINES])


def _histogram(buckets: list[Sample]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds in rising order and how many are at most each, of all engines together."""
    counts: dict[float, float] = {}
    for bucket in buckets:
        try:
            bound = float(bucket.labels.get("le", "inf"))
        except ValueError:
            bound = math.nan
        if math.isnan(bound):
            raise BadInput(f"/metrics: {bucket.name} has a bound that is no number")
        counts[bound] = counts.get(bound, 0.0) + float(bucket.value)
    bounds = sorted(counts)
    return np.array(bounds), np.array([counts[bound] for bound in bounds])


def _whole(text: str | None) -> int:
    good = text is not None and text.isascii() and text.isdigit() and len(text) <= DIGITS
    return int(text or 0) if good else 0
