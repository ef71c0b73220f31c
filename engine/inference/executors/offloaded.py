"""Attention offloading (Lamina, arXiv 2405.01814): keys, values and attention on devices that are
rich in memory, everything else on devices that are rich in arithmetic."""

from typing import ClassVar, Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.hardware.device import device
from engine.hardware.link import link
from engine.inference.executors.executor import Built, Execution
from engine.inference.executors.modelled import Modelled
from engine.inference.executors.settings import Settings

Fault = Literal["none", "late"]


class Offloaded(Modelled):
    """A described pair of pools: `device` and its ranks compute, others hold the cache."""

    kind: Literal["offloaded"] = "offloaded"  # type: ignore[assignment]
    attention_device: str = knob(
        "rtx-3090", "Device that holds keys and attends", group="attention"
    )
    attention_devices: int = knob(
        16, "How many; each holds whole requests", low=1, high=1024, group="attention"
    )
    wire: str = knob("infiniband-200", "Link of each device to the others' pool", group="attention")
    bandwidth: float = knob(
        0.0, "Of that link in place of its sheet's; 0: the sheet's", low=0.0, high=1e15, unit="B/s",
        group="attention",
    )  # fmt: skip
    groups: int = knob(
        2, "Groups of requests that take turns on either pool", low=1, high=64, group="attention"
    )
    fault: Literal["none", "one_attends"] = knob(
        "none", "What goes wrong: one_attends, every request is dealt to the same attention device",
        group="faults",
    )  # fmt: skip

    def build(self, config: Settings) -> Built:
        """Raises BadInput where the cache does not fit the attention devices."""
        from engine.inference.executors.costs.modelled_executor import build, cost_of
        from engine.inference.executors.costs.offloaded_cost import OffloadedCost
        from engine.inference.executors.costs.ranks import Ranks
        from engine.models.kv import cache_spec
        from engine.models.loading.find import find

        model, machine = find(config.model).config, device(self.attention_device)
        per_page = config.page_size * cache_spec(model, config.dtype).bytes_per_token()
        over = config.pages * per_page - self.attention_devices * machine.capacity
        if over > 0:
            raise BadInput(
                f"pages {config.pages}: {over / 1e9:.3g} GB more than {self.attention_devices} "
                f"{machine.name} hold; choose fewer, or more attention devices"
            )
        alone = config.model_copy(update={"pages": 1})  # type: ignore[attr-defined]
        built = build(alone, self)
        executor = built.executor
        assert hasattr(executor, "cost")
        wire = link(self.wire)
        if self.bandwidth:
            wire = wire.model_copy(update={"bandwidth": self.bandwidth})
        executor.cost = OffloadedCost(
            model, config.dtype, executor.cost,
            cost_of(model, machine, config.dtype, self, Ranks()),
            1 if self.fault == "one_attends" else self.attention_devices,
            min(self.ranks.count, self.attention_devices), wire, self.groups,
        )  # fmt: skip
        return built


class OffloadedHere(Execution):
    """Processes of this machine: some hold the cache and attend, the first does the rest."""

    real: ClassVar[bool] = True
    kind: Literal["offloaded_here"] = "offloaded_here"
    workers: int = knob(1, "Processes that attend, each of some heads", low=1, high=8)
    limit: float = knob(120.0, "Longest all may take", low=1.0, high=86_400.0, unit="s")
    fault: Fault = knob(
        "none", "What goes wrong: late, a token's key is kept after it is looked for",
        group="faults",
    )  # fmt: skip

    def build(self, config: Settings) -> Built:
        raise BadInput(
            "executor offloaded_here: it needs processes of its own, which the page of "
            "attention-offloading starts; take executor=real here"
        )
