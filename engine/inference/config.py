"""InferenceConfig: model, workload, cache, scheduler and policies of a serving run."""

from typing import Literal

from engine.cache.eviction import Eviction, LeastRecentlyUsed
from engine.core.config import Choice, Config, knob
from engine.inference.executors.executor import Execution
from engine.inference.executors.real import Real
from engine.inference.policies.admission import Admission, Greedy
from engine.inference.policies.batching.decode_first import DecodeFirst
from engine.inference.policies.drafters.none import NoSpeculation
from engine.inference.policies.modules import Modules, OwnRouter
from engine.inference.policies.ordering.fcfs import FirstComeFirstServed
from engine.inference.policies.policy import Batching, Ordering
from engine.inference.policies.preemption import Preemption, Recompute
from engine.inference.policies.speculation import Speculation
from engine.inference.policies.streams import AsTrained, Streams
from engine.inference.policies.unmasking import Confidence, Unmasking
from engine.inference.requests.request import Sampling
from engine.inference.workloads.uniform import Uniform
from engine.inference.workloads.workload import Workload


class InferenceConfig(Config):
    """A model, the requests it gets, the memory they share and the policies that decide."""

    model: str = knob("stdlib-5m", "A shipped model, a folder, or a zoo name (random weights)")
    dtype: Literal["float32", "bfloat16", "float16"] = knob(
        "float32", "Numbers of weights, cache", called="Number format"
    )
    streams: Choice[Streams] = knob(make=AsTrained, doc="Passes that a token gets")
    modules: Choice[Modules] = knob(
        make=OwnRouter, doc="Which feed-forward a token takes where a layer has two"
    )
    seed: int = knob(0, "Seed of random weights, workload and sampling", low=0, high=2**31 - 1)
    workload: Choice[Workload] = knob(make=Uniform, doc="Where requests come from")
    executor: Choice[Execution] = knob(make=Real, doc="Tensors here, or a described device")

    page_size: int = knob(16, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(512, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)
    host_pages: int = knob(0, "Pages of the host tier", low=0, high=1 << 22, group="cache")
    prefix_sharing: bool = knob(True, "Find prefixes computed before", group="cache")
    eviction: Choice[Eviction] = knob(
        make=LeastRecentlyUsed, doc="Which cached page goes first", group="cache"
    )

    max_running: int = knob(
        64,
        "Requests in the batch at most",
        low=1,
        high=8192,
        group="scheduler",
        called="Requests at once",
    )
    step_tokens: int = knob(
        512, "Tokens a step computes at most", low=1, high=1 << 20, unit="tokens", group="scheduler"
    )
    ordering: Choice[Ordering] = knob(
        make=FirstComeFirstServed, doc="Who is next", group="scheduler"
    )
    admission: Choice[Admission] = knob(make=Greedy, doc="Who may enter", group="scheduler")
    batching: Choice[Batching] = knob(make=DecodeFirst, doc="What a step mixes", group="scheduler")
    preemption: Choice[Preemption] = knob(
        make=Recompute, doc="How a request yields its pages", group="scheduler"
    )
    speculation: Choice[Speculation] = knob(
        make=NoSpeculation, doc="Who drafts the tokens that a step verifies", group="speculation"
    )
    patience: int = knob(
        10_000,
        "Steps of waiting after which a request goes first, whatever the ordering",
        low=1,
        high=1 << 30,
        unit="steps",
        group="scheduler",
    )

    unmasking: Choice[Unmasking] = knob(
        make=Confidence, group="sampling",
        doc="Which masked places a step decides, of a model that fills in masks",
    )  # fmt: skip
    sampling: Sampling = knob(make=Sampling, doc="Unless the request says so", group="sampling")
    profile_every: int = knob(
        0, "Time a step's operations every so many steps; 0: never", low=0, high=1 << 20,
        group="views",
    )  # fmt: skip
    attention_every: int = knob(
        0, "Sample attention mass every so many steps; 0: never", low=0, high=1 << 20, group="views"
    )
    attention_layer: int = knob(
        -1, "Layer whose attention is sampled; -1: the last", low=-1, high=1023, group="views"
    )
    attention_head: int = knob(
        -1, "Head whose attention is sampled; -1: their mean", low=-1, high=1023, group="views"
    )
