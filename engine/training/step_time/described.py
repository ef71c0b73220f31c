"""A described training run: model, cluster, split and recipe, as one TOML file holds them.

model = "llama-3.1-8b"            # a public architecture; or leave it out and say [architecture]
[architecture]                    # config.json's fields, over those of the model
num_hidden_layers = 32
[cluster]
device = "h100-sxm"
devices = 128
[split]
tensor = 2
shard = "parameters"
[recipe]
sequence = 8192
microbatch = 2
"""

import json
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from engine.core.config import Config, from_dict, knob
from engine.core.errors import BadInput
from engine.core.names import suggest
from engine.core.toml import load
from engine.hardware.device import Device, Freeze, Plain, device
from engine.hardware.link import Link, link
from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.models.loading.public import called, fields_of, public

Shard = Literal["none", "optimizer", "gradients", "parameters"]
Recompute = Literal["none", "selective", "half", "full"]
Dtype = Literal["bfloat16", "float16", "float8"]


def _read(given: Any) -> Any:
    """Fields as an address and a command line write them: JSON."""
    return json.loads(given) if isinstance(given, str) else given


Fields = Annotated[Mapping[str, Any], BeforeValidator(_read), Freeze, Plain]


class OnDevices(Config):
    """[cluster]: what it runs on. A device's own link joins a node, adapters join nodes."""

    device: str = knob("h100-sxm", "a device with a data sheet")
    devices: int = knob(8, "devices in all", low=1, high=1 << 17)
    node: int = knob(0, "devices that the device's own link joins; 0: as its sheet says", low=0,
                     high=1024)  # fmt: skip
    network: str = knob("infiniband-400", "each adapter's link, by its sheet's name")
    adapters: int = knob(0, "network adapters of a node; 0: one for each device", low=0, high=1024)
    power: float = knob(0.0, "power a device is limited to; 0: as its sheet says", low=0.0,
                        high=1e5, unit="W")  # fmt: skip
    bandwidth: float = knob(0.0, "memory of a device, where it is another part's than its sheet's; "
                            "0: as its sheet says", low=0.0, high=1e15, unit="B/s")  # fmt: skip
    price: float = knob(0.0, "a device's for an hour, in your currency; 0: not asked", low=0.0,
                        high=1e6)  # fmt: skip

    def sheet(self) -> Device:
        found = device(self.device)
        return found.model_copy(update={"bandwidth": self.bandwidth}) if self.bandwidth else found

    def joined(self) -> int:
        """Devices of a node, as asked or by the sheet."""
        return self.node or self.sheet().domain

    def slowed(self) -> float:
        """How much longer work takes at the power limit: power goes with the cube of a clock."""
        usual = self.sheet().tdp
        if not self.power or not usual or self.power >= usual:
            return 1.0
        return float((usual / self.power) ** (1 / 3))

    def near(self) -> Link:
        """Raises BadInput where the device's sheet names no link to its kind."""
        sheet = self.sheet()
        if not sheet.scale_up:
            raise BadInput(f"device {self.device}: its sheet names no scale-up link; take another")
        return link(sheet.scale_up)


class StageSplit(Config):
    """[split] of a pipeline's stage: how its layers and the batch are divided over devices."""

    tensor: int = knob(1, "tensor-parallel ranks", low=1, high=1024)
    context: int = knob(1, "context-parallel ranks: keys and values go round a ring", low=1,
                        high=1024)  # fmt: skip
    expert: int = knob(1, "expert-parallel ranks, among the replicas", low=1, high=1024)
    shard: Shard = knob(
        "parameters", "what replicas divide: nothing, optimiser states (ZeRO-1), gradients too "
        "(ZeRO-2), parameters too (ZeRO-3, FSDP)",
    )  # fmt: skip
    shard_ranks: int = knob(0, "replicas that share one copy; 0: all", low=0, high=1 << 17)
    sequence_parallel: bool = knob(True, "norms split along the sequence among tensor ranks")


class Split(StageSplit):
    """[split]: how model and batch are divided; data-parallel replicas are what is left."""

    pipeline: int = knob(1, "pipeline ranks", low=1, high=1024)
    chunks: int = knob(1, "chunks of layers on each pipeline rank (interleaved 1F1B)", low=1,
                       high=64)  # fmt: skip


class PassRecipe(Config):
    """[recipe] of a pass: what a microbatch's forward and backward compute, and how."""

    sequence: int = knob(4096, "tokens of a sequence", low=1, high=1 << 24)
    microbatch: int = knob(1, "sequences of a pass", low=1, high=4096)
    dtype: Dtype = knob("bfloat16", "numbers of the layers' products")
    gradients: Literal["float32", "bfloat16", "float16"] = knob(
        "float32", "numbers in which replicas sum gradients"
    )
    state_bytes: int = knob(12, "optimiser's bytes of a parameter (Adam with a 32-bit copy: 12)",
                            low=0, high=64, unit="B")  # fmt: skip
    recompute: Recompute = knob(
        "none", "what the backward does again: nothing; attention alone; rows, attention and every "
        "other product; all",
    )  # fmt: skip
    early_stop: bool = knob(
        True, "recomputing stops at the last tensor that is needed: a layer's last product is not "
        "done again (torch's checkpoints; Megatron's do it)",
    )  # fmt: skip
    attention: Literal["flash", "flash-2", "flash-1", "unfused"] = knob(
        "flash", "attention kernels: the device's newest, FlashAttention's second or first "
        "version, or scores in memory",
    )  # fmt: skip
    compiled: bool = knob(False, "row operators fused by a compiler")
    dropout: bool = knob(False, "dropout after attention and feed-forward")
    overlap: bool = knob(True, "gathers and sums of replicas run beside passes")
    tensor_overlap: Literal["none", "backward", "all"] = knob(
        "none", "tensor ranks' collectives beside products: none; the backward's beside the "
        "weights' gradients; all",
    )  # fmt: skip
    dispatch: Literal["copies", "once"] = knob(
        "copies", "what expert ranks send to another node: each token for each of its experts, or "
        "once, to be copied there (DeepEP; Megatron-LM's flex dispatcher)",
    )  # fmt: skip
    experts: Literal["together", "each"] = knob(
        "together", "experts' products: in one kernel (torch's grouped_mm), or in one for each "
        "expert (TransformerEngine's GroupedLinear)",
    )  # fmt: skip
    expert_overlap: bool = knob(
        False, "expert ranks' messages run beside another microbatch's passes (DualPipe; "
        "Megatron-LM's overlap-moe-expert-parallel-comm)",
    )  # fmt: skip
    fused_gradients: bool = knob(
        False, "gradients are added up where a product makes them, not in a pass of their own"
    )


class Recipe(PassRecipe):
    """[recipe]: what a step computes, and how."""

    batch: int = knob(0, "sequences of a step; 0: one microbatch for each replica", low=0,
                      high=1 << 24)  # fmt: skip


class TrainingRun(Config):
    """One run. `architecture`: fields of a Hugging Face config.json, over those of `model`."""

    model: str = knob("llama-3.1-8b", "a public architecture; empty: [architecture] says all")
    architecture: Fields = knob(make=dict, doc="config.json's fields")
    cluster: OnDevices = knob(make=OnDevices, doc="what it runs on")
    split: Split = knob(make=Split, doc="how it is divided")
    recipe: Recipe = knob(make=Recipe, doc="what a step computes")

    def config(self) -> ModelConfig:
        """The model's shape. Raises BadInput where it is not known."""
        return _config(self.model, json.dumps(self.architecture, default=_thawed))

    @property
    def replicas(self) -> int:
        """Data-parallel replicas. Raises BadInput where ranks do not divide the devices."""
        split, devices = self.split, self.cluster.devices
        ranks = split.tensor * split.pipeline * split.context
        if devices % ranks:
            raise BadInput(
                f"split: {split.tensor} tensor x {split.pipeline} pipeline x {split.context} "
                f"context ranks do not divide {devices} devices; take a divisor"
            )
        return devices // ranks

    @property
    def batch(self) -> int:
        """Sequences of a step."""
        return self.recipe.batch or self.replicas * self.recipe.microbatch

    @property
    def microbatches(self) -> int:
        """Passes of each replica in a step. Raises BadInput where the batch does not divide."""
        each = self.replicas * self.recipe.microbatch
        if self.batch % each:
            raise BadInput(
                f"recipe: a batch of {self.batch} sequences does not divide among {self.replicas} "
                f"replicas with microbatches of {self.recipe.microbatch}; take a multiple of {each}"
            )
        return self.batch // each

    @property
    def sharing(self) -> int:
        """Ranks that share one copy of what is sharded: replicas, context ranks among them."""
        owners = self.replicas * self.split.context
        ranks = self.split.shard_ranks or owners
        if owners % ranks:
            raise BadInput(f"split: shard_ranks {ranks} does not divide {owners} replicas")
        return ranks


@lru_cache(maxsize=256)
def _config(name: str, changes: str) -> ModelConfig:
    facts: dict[str, Any] = {}
    if name:
        known, meant = public(), called(name)
        if meant not in known:
            raise BadInput(f"model {name!r}: not known; {suggest(name, list(known))}")
        facts = fields_of(known[meant])
    return parse({**facts, **json.loads(changes)}, f"run: {name or 'architecture'}")


def _thawed(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def read(path: Path) -> TrainingRun:
    """The run that a TOML file describes. Raises BadInput naming the file and the first fault."""
    try:
        fields = load(path)
    except OSError as fault:
        raise BadInput(f"{path}: cannot read ({fault.strerror}); give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path}: not a TOML file ({fault}); mend that line") from None
    given = fields.get("architecture")
    if isinstance(given, dict):
        fields["architecture"] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in given.items()
        }
        fields.setdefault("model", "")
    try:
        return from_dict(TrainingRun, fields)
    except BadInput as fault:
        raise BadInput(f"{path}: {fault}") from None
