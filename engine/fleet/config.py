"""FleetConfig: replicas of an engine, their router, pools, link, faults, objectives and price."""

from engine.core.config import Choice, Config, knob
from engine.core.errors import BadInput
from engine.core.limits import limits
from engine.fleet.faults import Faults
from engine.fleet.pools.pools import Pools, Together
from engine.fleet.power.power import BrakeOnly, Power
from engine.fleet.routers.by_load import LeastLoaded
from engine.fleet.routers.router import Router
from engine.fleet.scaling.scaling import Elastic, Fixed, Scaling
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.policies.batching.side_by_side import SideBySide
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.streamed import Streamed
from engine.inference.workloads.synthetic import Lengths


def described() -> InferenceConfig:
    """An 8B model on an H100, as one replica."""
    return InferenceConfig(
        model="llama-3.1-8b",
        dtype="bfloat16",
        executor=Modelled(),
        workload=Poisson(
            count=400,
            rate=40.0,
            prompt=Lengths(median=900, spread=0.7, longest=8000),
            output=Lengths(median=160, spread=0.7, longest=1000),
        ),
        pages=24_000,
        max_running=128,
        step_tokens=2048,
    )


class Objective(Config):
    """What a request must keep to count as good."""

    ttft: float = knob(1.0, "Time to first token at most", low=0.0, high=1e6, unit="s")
    tpot: float = knob(0.1, "Time per output token at most", low=0.0, high=1e6, unit="s")


class FleetConfig(Config):
    """Replicas of one engine behind a router. The requests are the engine's workload."""

    replicas: int = knob(4, "Engines alike, each with a scheduler and a cache", low=1, high=100_000)
    router: Choice[Router] = knob(make=LeastLoaded, doc="Which replica gets a request")
    pools: Choice[Pools] = knob(make=Together, doc="Who prefills and who decodes")
    scaling: Choice[Scaling] = knob(make=Fixed, doc="How many replicas serve; `replicas` at most")
    link: str = knob("", "Link between replicas, by its sheet; none: the device's to its kind")
    bandwidth: float = knob(
        0.0, "Of that link in place of its sheet's; 0: the sheet's", low=0.0, high=1e15, unit="B/s"
    )
    engine: InferenceConfig = knob(make=described, doc="Each replica, and what is asked of them")
    objective: Objective = knob(make=Objective, doc="When a request counts as good")
    power: Choice[Power] = knob(make=BrakeOnly, doc="What the row may draw, and who is capped")
    faults: Faults = knob(make=Faults, doc="What goes wrong", group="faults")
    pace: float = knob(
        1.0, "Steps of every replica take so many times as long as modelled", low=0.01, high=100.0,
        unit="×", log=True, group="faults", called="All steps longer by",
    )  # fmt: skip
    price: float = knob(
        0.0, "Of a device for an hour; 0: not told", low=0.0, high=1e6, unit="$", group="price"
    )
    decode_price: float = knob(
        0.0, "Of a decoding replica's device; 0: as the others'", low=0.0, high=1e6, unit="$",
        group="price",
    )  # fmt: skip
    idle_power: float = knob(
        0.2, "Power that a device draws idle, of its most", low=0.0, high=1.0, group="price"
    )
    tokens: bool = knob(
        True, "Record every token, step and page count; without: requests, moves and figures alone"
    )
    record_every: int = knob(
        1, "Without tokens: record the events of one request in so many; figures are of all",
        low=1, high=1_000_000, log=True,
    )  # fmt: skip
    watch: int = knob(
        0, "Replica whose pages are recorded too, where tokens are; -1: none", low=-1, high=99_999
    )
    watch_every: int = knob(
        0, "Of its steps one in so many is recorded operation by operation; 0: none", low=0,
        high=1 << 20, called="Steps of the watched replica in detail: one in",
    )  # fmt: skip

    def check(self) -> None:
        """Raises BadInput where the fleet makes no sense."""
        if self.engine.executor.real:
            raise BadInput(
                "engine.executor: replicas of a fleet are modelled (--set engine.executor=modelled)"
            )
        if self.engine.sampling.n > 1:
            raise BadInput("engine.sampling.n: a fleet answers each request once; set it to 1")
        if isinstance(self.engine.workload, Streamed):
            raise BadInput(
                "engine.workload: a fleet does not replace a request by a later state of its "
                "input; take another workload, or one engine (workbench run stream2llm)"
            )
        if isinstance(self.engine.batching, SideBySide):
            raise BadInput(
                "engine.batching: replicas of a fleet do not split their devices; choose a policy "
                "with one step at a time (engine.batching=decode_first)"
            )
        if self.record_every > 1 and self.tokens:
            raise BadInput(
                f"record_every: events of one request in {self.record_every} make no whole steps; "
                "set tokens=false with it"
            )
        most = limits().lanes
        if self.replicas > most:
            raise BadInput(
                f"replicas: {self.replicas:,}, above the limit lanes of {most:,}; give fewer, or "
                f"raise it (WORKBENCH_LIMITS=lanes={self.replicas})"
            )
        roles = {self.pools.role(number, self.replicas) for number in range(self.replicas)}
        if roles == {"prefill"} or roles == {"decode"}:
            raise BadInput(
                f"pools: all {self.replicas} replicas {roles.pop()}; leave some for the other phase"
            )
        self._check_scaling()
        for name in ("kill", "straggler"):
            number = getattr(self.faults, name)
            if number >= self.replicas:
                raise BadInput(f"faults.{name}: replica {number}, there are {self.replicas}")

    def _check_scaling(self) -> None:
        scaling = self.scaling
        if not isinstance(scaling, Elastic):
            return
        if not isinstance(self.pools, Together):
            raise BadInput("scaling: pools keep their size; let every replica do both "
                           "(pools=together), or serve by all (scaling=fixed)")  # fmt: skip
        if self.power.budget:
            raise BadInput("scaling: a row under a power budget keeps its replicas; leave one out")
        for name in ("least", "first"):
            if getattr(scaling, name) > self.replicas:
                raise BadInput(
                    f"scaling.{name}: {getattr(scaling, name)}, there are {self.replicas} replicas"
                )
