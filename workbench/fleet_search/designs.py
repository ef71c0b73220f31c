"""Fleet designs: tensor ranks, replicas, prefill and decode pools, router, a step's tokens."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.names import counted
from engine.fleet.config import FleetConfig
from engine.fleet.config import Objective as PerRequest
from engine.fleet.pools.pools import Pools, Together
from engine.fleet.pools.prefill_decode import PrefillDecode
from engine.fleet.routers.by_load import PowerOfChoices, RoundRobin
from engine.fleet.routers.prefix_aware import PrefixAware
from engine.fleet.routers.router import Router
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.serving_time.described import Limits, OnDevices, ServingRun, Split
from engine.inference.serving_time.replica import Replicas
from workbench.fleet_search.asked import FleetSearch

# Those that routers of vLLM and SGLang have too.
ROUTERS: dict[str, type[Router]] = {
    "power_of_choices": PowerOfChoices, "prefix_aware": PrefixAware, "round_robin": RoundRobin,
}  # fmt: skip
CHUNKS = (512, 2048, 8192)  # tokens of a step
SHARES = (0.25, 0.5, 0.75)  # of a fleet's replicas that prefill
MOST_PAGES = 1 << 22  # of a replica in the fleet's own terms
MOST = 4096  # designs


@dataclass(frozen=True, slots=True)
class Design:
    """One way to spend devices; `prefill` 0: every replica prefills and decodes."""

    tensor: int
    replicas: int
    prefill: int = 0
    router: str = "power_of_choices"
    tokens: int = 2048

    @property
    def devices(self) -> int:
        return self.tensor * self.replicas

    @property
    def words(self) -> str:
        """As people say it."""
        ranks = f" of {self.tensor} tensor ranks" if self.tensor > 1 else ""
        if self.prefill:
            decode = self.replicas - self.prefill
            told = f"{self.prefill} prefill + {counted(decode, 'decode replica')}{ranks}"
        else:
            told = f"{counted(self.replicas, 'replica')}{ranks}"
        routed = f", {self.router.replace('_', ' ')}" if self.replicas > 1 else ""
        return f"{told}{routed}, {self.tokens:,} tokens a step"


def described(asked: FleetSearch, design: Design) -> ServingRun:
    """One replica of a design, as the prediction of a serving run describes it."""
    limits = asked.engine.model_copy(update={"tokens": design.tokens})
    on = OnDevices(device=asked.device, constants=asked.constants, price=asked.price)
    return ServingRun(
        model=asked.model, dtype=asked.dtype, cluster=on, split=Split(tensor=design.tensor),
        engine=limits,
    )  # fmt: skip


def blocks(asked: FleetSearch, design: Design) -> int:
    """Blocks of cache of one replica. Raises BadInput where the weights leave no room."""
    return _blocks(described(asked, design))


@lru_cache(maxsize=256)
def _blocks(run: ServingRun) -> int:
    return min(MOST_PAGES, Replicas(run).memory.blocks)


def fleet_of(asked: FleetSearch, design: Design) -> FleetConfig:
    """The fleet that plays a design. Raises BadInput where a device cannot hold it."""
    limits: Limits = asked.engine
    host = limits.constants()
    pools: Pools = Together()
    if design.prefill:
        pools = PrefillDecode(prefill=design.prefill)
    return FleetConfig(
        replicas=design.replicas,
        router=ROUTERS[design.router](),  # type: ignore[call-arg]
        pools=pools,
        link=asked.link,
        engine=InferenceConfig(
            model=asked.model,
            dtype=asked.dtype,
            seed=asked.seed,
            workload=asked.workload,
            executor=update(
                Modelled(tensor_parallel=design.tensor, per_step=host.per_step,
                         per_sequence=host.per_sequence),
                {"device": asked.device, "constants": asked.constants},
            ),  # fmt: skip
            page_size=limits.page,
            pages=blocks(asked, design),
            max_running=limits.running,
            step_tokens=design.tokens,
        ),
        objective=PerRequest(ttft=asked.slo.ttft, tpot=asked.slo.tpot),
        price=asked.price,
        tokens=False,
        record_every=1_000_000,
        watch=-1,
    )  # fmt: skip


def sizes(most: int) -> list[int]:
    """Numbers of replicas that are tried: each a third or a half above the one before."""
    steps = (size for power in range(most.bit_length()) for size in (2 << power, 3 << power))
    return sorted({1, most, *(size for size in steps if size < most)})


def ranks(most: int) -> list[int]:
    """Tensor ranks that are tried, by powers of two."""
    return [1 << power for power in range(most.bit_length()) if 1 << power <= most]


def shapes(asked: FleetSearch) -> tuple[list[Design], dict[str, str]]:
    """Designs by ranks, replicas and pools; and why ranks are left out, by their number in words.

    Raises BadInput where none is left.
    """
    found: list[Design] = []
    left_out: dict[str, str] = {}
    for tensor in ranks(min(asked.tried.tensor, asked.most)):
        try:
            blocks(asked, Design(tensor, 1, tokens=asked.engine.tokens))
        except BadInput as fault:
            left_out[counted(tensor, "tensor rank")] = str(fault)
            continue
        for replicas in sizes(asked.most // tensor):
            one = Design(tensor, replicas, tokens=asked.engine.tokens)
            found += [one, *(_pooled(one) if asked.tried.pools else ())]
    if not found:
        raise BadInput(next(reversed(left_out.values())))
    if len(found) > MOST:
        raise BadInput(f"devices: {len(found):,} designs of {asked.most:,}; at most {MOST:,}")
    return found, left_out


def _pooled(one: Design) -> Iterator[Design]:
    counts = {round(one.replicas * share) for share in SHARES}
    for prefill in sorted(count for count in counts if 0 < count < one.replicas):
        yield replace(one, prefill=prefill)


def variants(asked: FleetSearch, shape: Design) -> list[Design]:
    """The same shape with other routers and limits on a step's tokens."""
    routers = ROUTERS if asked.tried.routers and shape.replicas > 1 else (shape.router,)
    chunks = CHUNKS if asked.tried.chunks else (shape.tokens,)
    made = [replace(shape, router=name, tokens=size) for name in routers for size in chunks]
    return [each for each in made if each != shape]
