"""Tables of measured operator times, told apart by their columns.

In comes a CSV file (lines that begin with # are notes); out come rows that name an operator of the
cost model with its shape. Layouts: products (m, n, k), attention (phase, heads …), experts, a
layer's operators (model, tp, num_tokens, …_ms), collectives (op, gpus, message_size), networks,
best products, bus bandwidths, and the profiles of `workbench.cost_model.profiles`.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.limits import cells_of, read_text
from workbench.cost_model import profiles
from workbench.cost_model.layers import LAYER, model_of
from workbench.cost_model.rows import (
    Cells,
    Found,
    LeftOut,
    Measured,
    dtype_of,
    not_covered,
)

OPS = {"alltoall": "all_to_all"}
POWER = re.compile(r"balanced|uniform|power_law_(\d+\.?\d*)")
# DeepSeek-V3 takes four of its eight groups of experts. A table's balanced scores are alike in all
# groups, so that ties decide: half of its experts are never asked, and the first group's rank too
# often (balanced_logits of ai-dynamo/aiconfigurator collector/helper.py at 095f58a5).
BY_GROUPS = ((7168, 8, 256),)  # hidden, topk, experts
CLUSTER = re.compile(r"\d+ ?x ?(\w+)")  # "8x H200 node"


def table(path: Path) -> list[Found]:
    """Every row of a table. Raises BadInput naming file, line and column."""
    found: list[Found] = []
    for cells in lines_of(path):
        found += _layout(path, set(cells.line))(cells)
    return found


def lines_of(path: Path) -> Iterator[Cells]:
    """Every line of a CSV file by column name; lines that begin with # are notes."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "not text"
        raise BadInput(f"{path}: cannot read ({why}); give a CSV file") from None
    numbered = [(i, line) for i, line in enumerate(lines, 1) if line.strip() and line[0] != "#"]
    if len(numbered) < 2:
        raise BadInput(f"{path}: no rows; give a CSV file with a header")
    origin = "\n".join([str(path), *(line for line in lines if line[:1] == "#")])
    head = [name.strip() for name in cells_of(numbered[0][1], f"{path}:{numbered[0][0]}")]
    for number, line in numbered[1:]:
        where = f"{path}:{number}"
        values = cells_of(line, where)
        if len(values) != len(head):
            raise BadInput(f"{where}: {len(values)} columns, not {len(head)}; mend that line")
        yield Cells(where, dict(zip(head, values, strict=True)), origin)


def _layout(path: Path, head: set[str]) -> Callable[[Cells], Iterator[Found]]:
    for columns, layout in LAYOUTS:
        if columns <= head:
            return layout
    known = "; ".join(" ".join(sorted(columns)) for columns, _ in LAYOUTS)
    raise BadInput(f"{path}: columns of no known layout; one of: {known}")


def _matmul(cells: Cells) -> Iterator[Found]:
    dtype = dtype_of(cells.text("dtype"))
    shape = tuple(cells.count(c) for c in ("m", "n", "k"))
    seconds = cells.time("us", 1e-6)
    group = f"matmul n={shape[1]} k={shape[2]}"
    sheet, gone = not_covered(cells, "system", dtype)
    yield gone or Measured("matmul", sheet, (*shape, dtype), seconds, group)


def _attention(cells: Cells) -> Iterator[Found]:
    phase = cells.text("phase")
    heads, kv_heads, dim = (cells.count(c) for c in ("heads", "kv_heads", "head_dim"))
    batch, new = cells.count("batch"), cells.count("isl")
    cached, seconds = cells.count("cached_step", 0), cells.time("us", 1e-6)
    laid = "laid" not in cells.line or cells.count("laid", 0) > 0
    sheet, gone = not_covered(cells, "system", "bfloat16")
    group = f"{phase} heads={heads} batch={batch}"
    shape = (batch, new, heads, kv_heads, dim)
    if gone:
        yield gone
    elif phase == "context" and not cached:
        yield Measured("prefill", sheet, (*shape, "bfloat16"), seconds, group, laid)
    elif phase == "context":
        yield Measured("chunk", sheet, (*shape, cached, "bfloat16"), seconds, group, laid)
    elif phase == "generation" and new == 1:
        one = (batch, cached + 1, kv_heads, dim, "bfloat16")
        yield Measured("decode", sheet, one, seconds, group)
    elif phase == "generation":
        yield LeftOut(cells.where, f"{phase} of {new} tokens over {cached} cached ones")
    else:
        raise BadInput(f"{cells.where}: column 'phase': {phase!r}; one of: context, generation")


def _layer(cells: Cells) -> Iterator[Found]:
    name, tp, m = cells.text("model"), cells.count("tp"), cells.count("num_tokens")
    times = {op: cells.time(f"{op}_ms", 1e-3) for op in LAYER if f"{op}_ms" in cells.line}
    sheet, gone = not_covered(cells, "device", "float16")
    config = model_of(name)
    if gone or config is None:
        yield gone or LeftOut(cells.where, f"model {name!r} is not in the dataset")
        return
    for op, seconds in times.items():
        operator, shape = LAYER[op](config, tp, m)
        group = f"layer {name} tp={tp}"
        yield Measured(operator, sheet, (*shape, "float16"), seconds, group)


def _collective(cells: Cells) -> Iterator[Found]:
    op = OPS.get(cells.text("op"), cells.text("op"))
    ranks, size = cells.count("gpus", 2), 2.0 * cells.count("message_size")
    seconds = cells.time("us", 1e-6)
    sheet, gone = not_covered(cells, "system", "bfloat16")
    group = f"collective {op} {ranks}"
    yield gone or Measured("collective", sheet, (op, ranks, size), seconds, group)


def _network(cells: Cells) -> Iterator[Found]:
    op, ranks = cells.text("collective"), cells.count("num_workers")
    each, size = cells.count("devices_per_node"), float(cells.count("bytes"))
    seconds, network = cells.time("median_ms", 1e-3), cells.text("network")
    sheet, gone = not_covered(cells, "network", "bfloat16")
    if gone is None and each != ranks:
        gone = LeftOut(cells.where, "crosses nodes")
    if gone is None and "pairwise" in network and ranks > 2:
        gone = LeftOut(cells.where, "links join pairs alone; one pair meets another in the host")
    if gone is None and op == "send_recv":
        gone = LeftOut(cells.where, "a single message, not a collective")
    group = f"network {network} {op} {ranks}"
    yield gone or Measured("collective", sheet, (op, ranks, size), seconds, group)


def _experts(cells: Cells) -> Iterator[Found]:
    dtype, how = dtype_of(cells.text("dtype")), cells.text("distribution")
    names = ("hidden", "inter", "topk", "experts", "moe_tp", "moe_ep")
    shape = tuple(cells.count(name) for name in names)
    tokens, seconds = cells.count("tokens"), cells.time("us", 1e-6)
    sheet, gone = not_covered(cells, "system", dtype)
    if gone is None and shape[3] % shape[5]:
        gone = LeftOut(cells.where, "experts do not divide among their ranks")
    if gone is None and how == "balanced" and (shape[0], *shape[2:4]) in BY_GROUPS:
        gone = LeftOut(cells.where, "called balanced, of a model whose routes go by groups")
    law = POWER.fullmatch(how)
    if gone is None and law is None:
        gone = LeftOut(cells.where, f"distribution {how!r}: balanced or power_law_… is known")
    power = float(law[1] or 0) if law else 0.0
    group = f"experts {shape} {how}"
    yield gone or Measured("experts", sheet, (*shape, power, tokens, dtype), seconds, group)


def _best(cells: Cells) -> Iterator[Found]:
    """The best product found on a device, as a rate."""
    dtype, rate = dtype_of(cells.text("dtype").lower()), cells.number("mamf_tflops", 1e-6)
    sheet, gone = not_covered(cells, "accelerator", dtype)
    sizes = cells.text("best_shape_MxNxK").split("x")
    if len(sizes) != 3 or not all(size.isdigit() and int(size) for size in sizes):
        raise BadInput(f"{cells.where}: column 'best_shape_MxNxK': three sizes are needed")
    m, n, k = map(int, sizes)
    seconds = 2 * m * n * k / (rate * 1e12)
    yield gone or Measured("matmul", sheet, (m, n, k, dtype), seconds, f"best n={n} k={k}")


def _bus(cells: Cells) -> Iterator[Found]:
    """An all-reduce's bus bandwidth within a node."""
    told = CLUSTER.search(cells.text("system"))
    what = cells.text("what")
    if not what.startswith("all_reduce") or "node" in cells.text("system").split(" x ")[0][:8]:
        yield LeftOut(cells.where, f"{what}: no all-reduce within a node")
        return
    if told is None or not cells.line.get("payload_bytes", "").strip():
        yield LeftOut(cells.where, "no device or no size of the tensor is told")
        return
    cells.line |= {"of": told[1]}
    ranks, size = cells.count("gpus", 2), float(cells.count("payload_bytes"))
    seconds = 2 * (ranks - 1) / ranks * size / (cells.number("busbw_GBps", 1e-9) * 1e9)
    sheet, gone = not_covered(cells, "of", "bfloat16")
    shape = ("all_reduce", ranks, size)
    yield gone or Measured("collective", sheet, shape, seconds, f"bus {ranks}")


def _flash(cells: Cells) -> Iterator[Found]:
    """Rates of FlashAttention's own benchmark: 16k tokens, hidden 2048."""
    which, causal = cells.text("pass"), cells.count("causal", 0)
    dim, tokens, rate = cells.count("head_dim"), cells.count("seqlen"), cells.number("tflops", 1e-6)
    sheet, gone = not_covered(cells, "gpu", "float16")
    if gone is None and (which != "fwd" or not causal):
        gone = LeftOut(cells.where, f"attention {which}, causal {causal}: forward causal is known")
    batch, heads = max(1, 16384 // tokens), max(1, 2048 // dim)
    seconds = 2.0 * tokens**2 * dim * heads * batch / (rate * 1e12)
    shape = (batch, tokens, heads, heads, dim, "float16")
    group = f"flash {cells.text('impl')} {dim}"
    yield gone or Measured("prefill", sheet, shape, seconds, group, laid=False)


LAYOUTS: tuple[tuple[frozenset[str], Callable[[Cells], Iterator[Found]]], ...] = (
    (frozenset({"system", "dtype", "m", "n", "k", "us"}), _matmul),
    (
        frozenset({"system", "phase", "heads", "kv_heads", "head_dim", "batch", "isl", "us"}),
        _attention,
    ),
    (
        frozenset({"system", "dtype", "hidden", "inter", "topk", "experts", "tokens", "us"}),
        _experts,
    ),
    (frozenset({"device", "model", "tp", "num_tokens"}), _layer),
    (frozenset({"system", "op", "gpus", "message_size", "us"}), _collective),
    (frozenset({"network", "collective", "num_workers", "bytes", "median_ms"}), _network),
    (frozenset({"dtype", "accelerator", "mamf_tflops", "best_shape_MxNxK"}), _best),
    (frozenset({"what", "system", "gpus", "payload_bytes", "busbw_GBps"}), _bus),
    (frozenset({"gpu", "pass", "causal", "head_dim", "impl", "seqlen", "tflops"}), _flash),
    (frozenset({"layer", "tokens", "time_us"}), profiles.by_tokens),
    (frozenset({"layer", "sequences", "time_us"}), profiles.by_sequences),
    (frozenset({"prefill_chunk", "kv_prefill", "n_decode", "kv_decode"}), profiles.attention),
)
