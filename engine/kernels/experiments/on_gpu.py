"""Attention's Triton kernels on a GPU, in turns with torch's own, under roofs measured beforehand.

In comes which lengths; out goes a span for each timed call, ours and torch's, so that the log can
be replayed where there is no GPU. `device="cpu"` walks the same path through Triton's interpreter:
right, and of no use as a figure.
"""

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from engine.core.clock import WallClock
from engine.core.config import Config, knob
from engine.core.difference import FAR
from engine.core.errors import BadInput
from engine.core.events import Level, Span
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.roofs import Roof
from engine.kernels import attention, paged_attention
from engine.kernels.attention.cases import case
from engine.kernels.attention.gradients import Switches, Tensors
from engine.kernels.attention.tiles import Tile, forward, forward_tile
from engine.kernels.operator import Arguments, Work
from engine.kernels.paged_attention.cases import made
from engine.kernels.paged_attention.policies.lean import Lean
from engine.kernels.paged_attention.split_kv import RUNS, launch, planned

WIDTH = 2048  # heads · size of prefill, as FlashAttention-2 is measured (arXiv 2307.08691)
PREFILL, DECODE, ERROR = "attention", "paged attention", "error"
PEER = "torch"
OTHERS = (Tile(128, 128, 8, 2), Tile(128, 64, 4, 3), Tile(64, 128, 4, 3), Tile(64, 64, 4, 3))
LEAN = (RUNS, 1, 2, 8)  # programs of decode for each multiprocessor: the engine's, and others
Calls: TypeAlias = dict[str, Callable[[], Tensor]]


class GpuAttention(Config):
    """What to time."""

    shortest: int = knob(2048, "Shortest sequence of prefill", low=16, high=2**20)
    longest: int = knob(16384, "Longest, and tokens of all sequences", low=16, high=2**20)
    context: int = knob(16384, "Keys of each sequence in decode", low=16, high=2**20)
    batch: int = knob(32, "Sequences in decode", low=1, high=4096)
    rounds: int = knob(20, "Turns of each call", low=1, high=1000)
    others: bool = knob(False, "Other tiles than the chosen ones, too")
    device: Literal["cuda", "cpu"] = knob("cuda", "cpu: by Triton's interpreter, for tests")
    seed: int = knob(0, "Seed of the inputs", low=0, high=2**31 - 1)


def run(config: GpuAttention, live: Live) -> None:
    """The driver. Raises BadInput where there is no GPU."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise BadInput("no GPU here that torch can use; run this on a machine with one")
    clock = WallClock()
    facts: dict[str, Any] = {}
    if config.device == "cuda":
        facts = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    live.report("measuring the GPU", 0, 0)
    live.open(config, clock, roofs=roofs(config), **facts)
    bench = _Bench(config, live, clock)
    with torch.inference_mode():
        for name, work, calls in (*_prefills(config), *_decodes(config)):
            live.report(f"{name} {work[0]}", 0, 0)
            bench.compare(name, work[0], work[1], calls)


def roofs(config: GpuAttention) -> list[Roof]:
    """Memory read, and bfloat16 products, as torch reaches them; one-off values on a processor."""
    small = config.device == "cpu"
    numbers, side = (2**16, 64) if small else (2**30, 8192)
    x = torch.randn(numbers, device=config.device)
    a = torch.randn(side, side, device=config.device, dtype=torch.bfloat16)
    read = x.nbytes / min(timed(lambda: x.sum(), 5, 2, config.device))
    copied = 2 * x.nbytes / min(timed(x.clone, 5, 2, config.device))
    rate = 2 * side**3 / min(timed(lambda: a @ a, 5, 4, config.device))
    row = {"device": "this-gpu", "grade": "measured"}
    memory = {"kind": "bandwidth", "name": "HBM read", "level": "HBM", "dtype": ""}
    product = {"kind": "compute", "name": "bfloat16 matmul", "level": "", "dtype": "bfloat16"}
    return [
        row | memory | {"value": max(read, copied)},
        row | product | {"value": rate},
    ]


def timed(call: Callable[[], Any], rounds: int, inner: int, device: str) -> list[float]:
    """Seconds of a call on the device, `rounds` times the mean of `inner`, after one more."""
    call()
    return [_seconds(call, inner, device) for _ in range(rounds)]


def _seconds(call: Callable[[], Any], inner: int, device: str) -> float:
    if device == "cpu":
        start = perf_counter()
        for _ in range(inner):
            call()
        return (perf_counter() - start) / inner
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(inner):
        call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / inner


class _Bench:
    """Calls in turns; each becomes a span of its time on the device."""

    def __init__(self, config: GpuAttention, live: Live, clock: WallClock) -> None:
        self.config, self.live, self.clock = config, live, clock

    def compare(self, lane: str, shape: str, work: Work, calls: Calls) -> None:
        """The first is ours as it is picked, the last torch's, which all are held against."""
        device, facts = self.config.device, {"dtype": "bfloat16", "shape": shape}
        truth = calls[PEER]().float()
        for name, call in calls.items():
            of, worst = f"{lane} {name} {shape}", _apart(call().float(), truth)
            self.live.emit(Level(self.clock.now(), of, "error", worst))
        phase = "prefill" if lane == PREFILL else "decode"
        told = tag(**facts, phase=phase, specials=work.specials)
        for _ in range(self.config.rounds):
            self.live.poll(self.clock.now())
            for name, call in calls.items():
                took = _seconds(call, 1 if device == "cpu" else 5, device)
                now = self.clock.now()
                span = Span(now, lane, name, now - took, work.flops, work.bytes["memory"], told)
                self.live.emit(span)


def _apart(found: Tensor, truth: Tensor) -> float:
    """The largest difference over the truth's largest number, found where the numbers lie."""
    off = (found - truth).abs().nan_to_num(nan=FAR, posinf=FAR).max()
    return float(off / truth.abs().max())


def _moved(given: Arguments, device: str) -> dict[str, Any]:
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in given.items()}


def _prefills(config: GpuAttention) -> Iterator[tuple[str, tuple[str, Work], Calls]]:
    """FlashAttention-2's setting: heads · size = WIDTH and as many tokens at every length."""
    for dim in (64, 128):
        heads = max(1, (WIDTH if config.device == "cuda" else dim) // dim)
        drawn = case("", (max(config.longest, config.shortest),), heads, heads, dim)
        numbers = _moved(drawn.make(config.seed, torch.bfloat16), config.device)
        length = config.shortest
        while length <= config.longest:
            for causal in (True, False):
                yield PREFILL, *_prefill(config, numbers, length, causal)
            length *= 2


def _prefill(
    config: GpuAttention, numbers: Arguments, length: int, causal: bool
) -> tuple[tuple[str, Work], Calls]:
    """As many sequences of that length as the numbers, those of one sequence, are enough for."""
    _, heads, dim = numbers["q_THD"].shape
    lengths = (length,) * max(1, config.longest // length)
    starts = torch.arange(len(lengths) + 1) * length
    parts = {name: numbers[name][: starts[-1]] for name in ("q_THD", "k_SGD", "v_SGE")}
    switched = {**numbers, **parts, "causal": causal}
    made = {**switched, "query_start_B1": starts, "key_start_B1": starts}
    given = _moved(made, config.device)
    tensors = Tensors(*(given[name] for name in Tensors._fields))
    q, k, v = (
        x.view(len(lengths), length, heads, dim).transpose(1, 2).contiguous() for x in tensors[:3]
    )
    switches = Switches(given["scale"], causal)

    def torchs() -> Tensor:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            o = scaled_dot_product_attention(q, k, v, is_causal=causal)
        return o.transpose(1, 2).reshape(tensors.q_THD.shape)

    calls: Calls = {"tiles": partial(_forward, tensors, switches, None, length)}
    for tile in OTHERS if config.others else ():
        if tile != forward_tile(dim, 2):
            name = "tile_" + "x".join(map(str, tile))
            calls[name] = partial(_forward, tensors, switches, tile, length)
    shape = f"{len(lengths)}x{length}x{heads}x{dim}_{'causal' if causal else 'dense'}"
    return (shape, attention.OPERATOR.work(made)), {**calls, PEER: torchs}


def _forward(tensors: Tensors, switches: Switches, tile: Tile | None, longest: int) -> Tensor:
    return forward(tensors, switches, tile, longest)[0]


def _decodes(config: GpuAttention) -> Iterator[tuple[str, tuple[str, Work], Calls]]:
    """One new token a sequence over a paged cache; the plan is made before, as a step makes it."""
    for heads, kv_heads, dim in ((32, 8, 128), (8, 8, 64)):
        made_ = made(
            heads, kv_heads, dim, [1] * config.batch, [config.context] * config.batch,
            config.seed, torch.bfloat16, distinct=512,
        )  # fmt: skip
        given = _moved(made_, config.device)
        shape = f"{config.batch}x{heads}:{kv_heads}x{dim}@{config.context}"
        work = paged_attention.OPERATOR.work(made_)
        yield DECODE, (shape, work), _decode_calls(config, given, kv_heads)


def _decode_calls(config: GpuAttention, given: dict[str, Any], kv_heads: int) -> Calls:
    q, k, v = given["q_THD"], given["k_PSGD"], given["v_PSGE"]
    start = given["query_start_B1"].cpu().numpy()
    heads = q.shape[1], kv_heads, v.shape[-1]
    said = (given["block_table_BP"], start[:-1], given["context_B"].cpu().numpy(), 0)
    calls: Calls = {}
    for runs in LEAN:
        ready = planned(Lean(runs=runs), *said, heads, q.device)
        name = "lean" if runs == RUNS else f"lean_{runs}_runs"
        calls[name] = partial(launch, ready, q, k, v, given["scale"], 0.0)
    held = [
        x[given["block_table_BP"].long()].flatten(1, 2)[:, : config.context].transpose(1, 2)
        for x in (k, v)
    ]
    keys, values = (x.contiguous() for x in held)
    grouped = q.shape[1] != kv_heads

    def torchs() -> Tensor:
        o = scaled_dot_product_attention(
            q[:, :, None], keys, values, scale=given["scale"], enable_gqa=grouped
        )
        return o[:, :, 0]

    return {**calls, PEER: torchs}
