"""TokenRing: queries one way round, partial results the other, keys and values stay."""

from engine.core.config import update
from engine.core.events import Level, Span
from engine.core.log import Log
from engine.core.plot import Plot
from engine.distributed.exposed_communication import exposed, sent
from engine.hardware import link
from engine.training.context_parallel.config import SequenceConfig
from engine.training.context_parallel.executors.modelled import Modelled
from engine.training.context_parallel.policies.token_ring import TokenRing
from engine.training.context_parallel.run import ERROR, run
from workbench.studies.training._tokenring import (
    FOUR,
    LESS,
    LINKS,
    MESHES,
    at_link,
    grouped,
    in_mesh,
    less_exposed,
    mesh_of,
)
from workbench.study import (
    Break,
    Changes,
    Claim,
    Figure,
    Outcome,
    Regime,
    Reported,
    RunConfig,
    Study,
    Sweep,
)

RING: Changes = {"attention": "ring"}
ONE_WAY = Break({"attention.one_way": True}, True, "results take the way of the queries")
GROUPED = Break({"share": 8}, why="grouped heads, whose keys are smaller than queries")
SMALL: Changes = {"executor": "real", "tokens": 384, "kv_heads": 2,
                  "dim": 32, "ranks": 4}  # fmt: skip


def exact(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Real ranks against one process, causal in three layouts."""
    worst, runs = [], 0
    layouts = ("zigzag", "contiguous", "striped")
    for ranks, layout in zip((4, 2, 3), layouts, strict=True):
        sized: Changes = {**SMALL, "ranks": ranks, "layout": layout, "share": 2, "backward": True,
                          "causal": True}  # fmt: skip
        found = [
            level.value
            for level in run_config(update(config, sized)).of(Level)
            if level.name == ERROR
        ]
        worst += found
        runs += len(found) == 4
    return Outcome(
        f"o, dq, dk, dv on 2, 3 and 4 gloo ranks ({', '.join(layouts)}) within 1e-5 of one process",
        f"largest error {max(worst):.1e}",
        runs == 3 and all(0 < error <= 1e-5 for error in worst),
        figure=Figure.exact(max(worst)),
        needed=1e-5,
    )


def busiest(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Bytes on the busiest link, one way, counted on real ranks."""
    most = {}
    for kind in (config.attention.kind, "ring"):
        changes: Changes = {**SMALL, "attention": kind, "backward": False, "dropped": -1}
        most[kind] = max(sent(run_config(update(config, changes))).values())
    ours, ring = most[config.attention.kind], most["ring"]
    return Outcome(
        "its busiest link carries at most 0.7× the bytes of ring attention's (4 ranks)",
        f"{ours / ring:.2f}× ({ours / 1024:.0f} against {ring / 1024:.0f} KiB)",
        ours <= 0.7 * ring,
        figure=Figure.exact(ours / ring, "×"),
        needed=0.7,
    )


def balanced(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Flops of each rank under a causal mask, counted from its spans."""
    log = run_config(update(config, {**FOUR, "causal": True, "ranks": 8}))
    work = flops(log)
    spread = max(work) * len(work) / sum(work)
    return Outcome(
        "no rank of 8 has more than 1.01× the mean work under a causal mask",
        f"{spread:.3f}×",
        spread <= 1.01,
        figure=Figure.exact(spread, "×"),
        needed=1.01,
    )


def flops(log: Log) -> list[float]:
    """Of each rank."""
    found: dict[str, float] = {}
    for span in log.of(Span):
        if span.lane.startswith("rank "):
            found[span.lane] = found.get(span.lane, 0.0) + span.flops
    return list(found.values())


OVER_LINKS = Sweep(
    Plot("time spent waiting", "link bandwidth (B/s)", "share of the time", log_x=True),
    ("executor.link", LINKS),
    lambda log: max(exposed(log).values()) / max(span.stop for span in log.of(Span)),
    {kind: {"attention": kind} for kind in ("ring", "token_ring", "all_to_all")},
    {"executor": "modelled", "dropped": -1},
    along=lambda log: link(log.opened.config["executor"]["link"]).bandwidth,
    modelled=True,
)  # fmt: skip


STUDY = Study(
    slug="tokenring",
    driver=run,
    config=SequenceConfig(
        attention=TokenRing(),
        executor=Modelled(),
        tokens=24576,
        kv_heads=32,
        dim=128,
        backward=False,
    ),
    views=("schedule", "levels", "topology"),
    about=(
        "Ring attention sends keys and values one way and leaves the other direction of every "
        "link idle. TokenRing leaves keys and values where they are: queries go round one way, "
        "and each partial result goes straight home with its sum of exponentials, the other way, "
        "while the next block is computed. A zigzag split gives every rank equal work under a "
        "causal mask. Bars are described devices on a virtual clock, or processes of this machine "
        "over gloo; the same program drives both. Backward, which the paper does not have, sends "
        "queries with their output gradients round and query gradients home."
    ),
    tries=(
        ("Ring attention on the same links", RING),
        ("Grouped queries: the gain is gone", {"kv_heads": 4, "share": 8}),
        ("Real ranks, forward and backward", {**SMALL, "backward": True}),
    ),
    sweeps=(OVER_LINKS,),
    presets={"ring": RING, "switch": {"executor.wiring": "switch"}},
    claims=(
        Claim(
            id="exact",
            sentence="Partial results merged at home, and their gradients, equal one process's.",
            paper="block outputs are merged by their sums, with no approximation (section 3)",
            grade="exact",
            check=exact,
            reported=Reported(0.0, "equal", tolerance=1e-5),
            finding="reproduced",
            broken=(Break({"attention.rescale": False}, True, "parts are added, not merged"),),
        ),
        Claim(
            id="less-exposed",
            sentence="On four A10 it waits for less of its communication than ring attention.",
            paper="about 3.5 to 4.6 ms a step against 7.6 ms, 4 A10, 24k tokens (second hand)",
            grade="modelled",
            check=less_exposed,
            reported=Reported(LESS, "less", none=1.0, unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="an A10 has one port: queries and results leave by it one after the other, as many "
            "bytes as ring attention's keys and values, and the last result is waited for alone. "
            "The maps have both wirings over links, and grouped heads. The paper's are our devices "
            "by sheet and a link of the speed that its 7.6 ms come to, without its contention. If "
            "its figures, which we know at second hand, are a step's transfers and not its waits, "
            "wires halve those here as there; and it hangs on the device: of A100, which hide "
            "less, one port comes to 0.9 there",
            broken=(ONE_WAY, GROUPED),
        ),
        Claim(
            id="in-mesh",
            sentence="In a fully connected mesh it waits for less of its communication than ring "
            "attention.",
            paper="a fully connected mesh topology; significant reductions in communication "
            "overhead (abstract); about 3.5 to 4.6 ms a step against 7.6 ms (second hand)",
            grade="modelled",
            check=in_mesh,
            reported=Reported(LESS, "less", none=1.0, unit="×"),
            finding="reproduced",
            why="four A10 with a wire for every two, which no A10 has: the topology that the "
            "abstract names, held against the figure that it is said to have measured, on a link "
            "as slow as that figure tells; on one twice as fast, and beyond, ring attention waits "
            "for nothing and ours for its last result (the map over links)",
            broken=(ONE_WAY, GROUPED),
        ),
        Claim(
            id="busiest-link",
            sentence="No link carries as many bytes one way as ring attention's do.",
            paper="queries one way, outputs the other (abstract)",
            grade="exact",
            check=busiest,
            reported=Reported(0.5, "less", none=1.0, unit="×"),
            finding="weaker",
            why="of keys and values, two tensors one way, one is left each way: half. Of 4 ranks "
            "the last result goes home over the link that the queries took; the 0.7 is ours",
            broken=(
                ONE_WAY,
                Break({"share": 4}, why="grouped heads, whose keys are smaller than queries"),
            ),
        ),
        Claim(
            id="balanced",
            sentence="A zigzag split gives every rank the same work under a causal mask.",
            paper="zigzag partition for causal attention (second hand)",
            grade="exact",
            check=balanced,
            reported=Reported(1.0, "equal", tolerance=0.01, unit="×"),
            finding="reproduced",
            why="equal work is the mean and no more, within a hundredth, which is ours",
            broken=(Break({"layout": "contiguous"}, True, "pieces are not dealt in zigzag"),),
        ),
    ),
    regimes=(
        Regime(
            claim="less-exposed",
            knob="share",
            values=(1, 2, 4, 8),
            x="query heads that share a key head",
            noun="heads",
            y="waiting for messages, over ring attention's (×)",
            less="A100 with a wire for every two",
            default=1,
            series={
                "PCIe 4": {"executor.link": "pcie4-x16"},
                "PCIe 5": {"executor.link": "pcie5-x16"},
                "NVLink 3": {"executor.link": "nvlink3"},
            },
            judged=grouped,
        ),
        *(
            Regime(
                claim="less-exposed",
                knob=f"link of four {name}",
                values=tuple(link(name).bandwidth for name in LINKS),
                coarse=tuple(link(name).bandwidth for name in LINKS[:3]),
                x=f"bandwidth of a link of four {name}, one way (B/s)",
                y="waiting for messages, over ring attention's (×)",
                less="each wiring by itself",
                paper=link("ethernet-100").bandwidth if device == "a10" else None,
                paper_is="the paper, as its 7.6 ms a step tell,",
                default=link("pcie4-x16").bandwidth if device != "a10" else None,
                series={
                    told: {"executor.device": device, "executor.wiring": wiring}
                    for told, wiring in (("a wire for every two", "mesh"), ("one port", "switch"))
                },
                judged=at_link,
                log_x=True,
            )
            for name, device in (("A10", "a10"), ("A100", "a100-sxm-80gb"))
        ),
        Regime(
            claim="in-mesh",
            knob="link",
            values=tuple(link(name).bandwidth for name in MESHES),
            coarse=tuple(link(name).bandwidth for name in MESHES[:3]),
            x="bandwidth of a link, one way (B/s)",
            y="waiting for messages, over ring attention's (×)",
            paper=link("ethernet-100").bandwidth,
            paper_is="the paper, as its 7.6 ms a step tell,",
            default=link("ethernet-100").bandwidth,
            judged=mesh_of,
            log_x=True,
        ),
    ),
    limits=(
        "The gain needs a link of its own for each pair and direction: where a rank has one port "
        "for all it sends (wiring switch), queries and results share it, and TokenRing waits "
        "longer than ring attention but on links that are slow for the device; and it needs as "
        "many key heads as query heads, since grouped keys are smaller than queries. On links fast "
        "enough to hide a whole round (about 1e11 B/s in the default) ring attention waits for "
        "nothing, while TokenRing still waits for its last result. A described link carries one "
        "message at a time, whole, and devices run at the rate the cost model gives causal "
        "attention of a rank's length, backward too. The default is an A100's compute on PCIe 4 "
        "wires. Waiting of real ranks on one machine is mostly waiting for a core."
    ),
)
