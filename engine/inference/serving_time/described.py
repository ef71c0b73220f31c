"""A described serving run: model, cluster, split, engine and load, as one TOML file holds them.

model = "llama-3.1-8b"
[cluster]
device = "h100-sxm"
[split]
tensor = 2
[engine]
name = "vllm"
running = 256
[load]
rate = 10                         # or trace = "azure-like.csv"
requests = 1000
"""

from pathlib import Path
from typing import Literal

import numpy as np

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.hardware.cost.constants import OWN
from engine.hardware.device import Device, device
from engine.hardware.sheet import named, read
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.workloads.synthetic import Lengths, arrivals
from engine.inference.workloads.trace import FromTrace
from engine.inference.workloads.traces.read import load
from engine.models.config import ModelConfig
from engine.models.loading.find import find

GIB = 2**30 / 1e9  # a device's memory is labelled in GB and counted in GiB
USABLE = 0.98  # of that, beside what the driver keeps


class Engine(Config):
    """An engine's constants: what its host adds to steps, and the memory it keeps."""

    slug: str = knob("", "file name of the sheet")
    name: str = knob(doc="as its authors call it")
    per_step: float = knob(doc="host time of a step", low=0, high=1, unit="s")
    per_sequence: float = knob(0.0, "host time of a sequence in a step", low=0, high=1, unit="s")
    reserved: float = knob(0.0, "memory of its own", low=0, unit="B")
    source: str = knob(doc="where they come from")


class OnDevices(Config):
    """[cluster]: what it runs on."""

    device: str = knob("h100-sxm", "a device with a data sheet")
    constants: str = knob(
        OWN, "of the cost model: own (the device's), a name, a file", called="Cost constants"
    )
    profile: str = knob(
        "", "folder of an operator profile, in place of curves", called="Operator profile"
    )
    price: float = knob(0.0, "a device's for an hour, in your currency; 0: not asked", low=0.0,
                        high=1e6, called="Price of a device-hour")  # fmt: skip

    def sheet(self) -> Device:
        """Raises BadInput where there is none."""
        return device(self.device)


class Split(Config):
    """[split]: how a model is divided; devices are the product of the three sizes."""

    tensor: int = knob(1, "tensor-parallel ranks", low=1, high=64, called="Tensor-parallel ranks")
    pipeline: int = knob(1, "pipeline ranks", low=1, high=64, called="Pipeline ranks")
    data: int = knob(
        1,
        "data-parallel ranks: requests are dealt among them",
        low=1,
        high=1024,
        called="Data-parallel ranks",
    )
    expert: bool = knob(
        False, "whole experts on a rank (expert parallelism)", called="Whole experts on a rank"
    )

    @property
    def ranks(self) -> Ranks:
        return Ranks(self.tensor, self.pipeline, self.data, self.expert)


class Limits(Config):
    """[engine]: the engine and its limits, of each data-parallel rank."""

    name: str = knob(
        "vllm", "constants of datasets/engines (vllm, sglang), or a file", called="Engine"
    )
    running: int = knob(
        256, "requests in the batch at most", low=1, high=8192, called="Requests at once"
    )
    tokens: int = knob(
        2048,
        "tokens of a step at most",
        low=1,
        high=1 << 20,
        unit="tokens",
        called="Tokens of a step",
    )
    page: int = knob(
        16,
        "tokens of a block of the cache",
        low=1,
        high=256,
        unit="tokens",
        called="Tokens of a block",
    )
    memory: float = knob(
        0.9,
        "share of a device's memory that is used",
        low=0.05,
        high=1.0,
        called="Share of memory used",
    )
    blocks: int = knob(
        0,
        "blocks of the cache; 0: what memory leaves",
        low=0,
        high=1 << 24,
        called="Blocks of the cache (0: what fits)",
    )
    per_step: float = knob(
        -1.0,
        "host time of a step; -1: the engine's",
        low=-1,
        high=1,
        unit="s",
        called="Host time of a step (-1: the engine's)",
    )

    def constants(self) -> Engine:
        """The engine's, host time of a step as told. Raises BadInput where it is not known."""
        if self.name.endswith(".toml"):
            found = read(Engine, Path(self.name))
        else:
            found = named(Engine, dataset("engines"), self.name)
        if self.per_step < 0:
            return found
        return found.model_copy(update={"per_step": self.per_step})


class Load(Config):
    """[load]: requests, from a trace or drawn."""

    trace: str = knob("", "a trace's file, or one of datasets/workloads; empty: drawn")
    requests: int = knob(1000, "how many; of a trace 0: all", low=0, high=10**6, called="Requests")
    rate: float = knob(
        10.0,
        "a second, Poisson; 0: all at once; of a trace: its own",
        low=0,
        called="Requests a second",
    )
    speed: float = knob(
        1.0,
        "a trace's arrivals so many times as fast",
        low=1e-3,
        high=1e6,
        called="Times as fast as the trace",
    )
    prompt: Lengths = knob(make=lambda: Lengths(median=512, spread=0.6), doc="tokens asked")
    answer: Lengths = knob(make=lambda: Lengths(median=128, spread=0.6), doc="tokens answered")
    seed: int = knob(0, "of what is drawn", low=0, high=2**31 - 1)

    def drawn(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Arrivals (s, in order), prompt and answer lengths (tokens). Raises BadInput."""
        if self.trace:
            told = load(FromTrace.path(self.trace), "auto", count=self.requests).requests
            rows = np.array([(r.arrival / self.speed, r.prompt, r.answer) for r in told])
            lengths = np.maximum(rows[:, 1:], 1).astype(int)
            return rows[:, 0] - rows[0, 0], lengths[:, 0], lengths[:, 1]
        random = np.random.default_rng([self.seed, 7])
        count = max(1, self.requests)
        times = arrivals(random, count, self.rate)
        return times, self.prompt.draw(random, count), self.answer.draw(random, count)


class ServingRun(Config):
    """One run."""

    kind: Literal["serving"] = "serving"
    model: str = knob("llama-3.1-8b", "a public architecture, or a folder")
    dtype: Literal["bfloat16", "float16", "float32"] = knob(
        "bfloat16", "of weights and cache", called="Number format"
    )
    cluster: OnDevices = knob(make=OnDevices, doc="what it runs on")
    split: Split = knob(make=Split, doc="how it is divided")
    engine: Limits = knob(make=Limits, doc="what serves it")
    load: Load = knob(make=Load, doc="what is asked")

    def config(self) -> ModelConfig:
        """The model's shape. Raises BadInput where it is not known."""
        found = find(self.model).config
        if found.mask:
            raise BadInput(f"model {self.model}: fills in masks; what is told here writes in order")
        return found
