"""Maps of BatchLLM's claims: over memory, prefixes, requests, and how answers' lengths spread."""

from workbench.studies.serving._batchllm.group_order import OVER_STEP
from workbench.studies.serving._batchllm.jobs import (
    COUNT,
    GROUPS,
    MEMORY,
    ROOMY,
    SORTED,
    over_count,
    sorted_with,
    trace_in,
    with_groups,
    with_memory,
)
from workbench.study import Regime

ORDERS = {"the job as it comes": {}, "sorted by the client": SORTED}
REGIMES: tuple[Regime, ...] = (
    Regime(
        claim="faster-described",
        knob="pages",
        values=(600, 1200, 2000, 2600, MEMORY, 3600),
        coarse=(1200, 2600, MEMORY),
        x="memory for keys and values (pages of 128 tokens)",
        noun="pages",
        y="throughput over streaming practice (×)",
        paper=MEMORY,
        paper_is="an A100 with 80 GB",
        default=MEMORY,
        series=ORDERS,
        judged=with_memory,
    ),
    Regime(
        claim="faster-described",
        knob="groups",
        values=(24, 48, 64, GROUPS, 128, 192),
        coarse=(24, 64, GROUPS),
        x="common prefixes of the job, of which 52 fit the memory",
        noun="prefixes",
        y="throughput over streaming practice (×)",
        default=GROUPS,
        series=ORDERS,
        judged=with_groups,
    ),
    Regime(
        claim="larger-batches",
        knob="requests",
        values=(64, 128, COUNT, 512, 1024),
        coarse=(128, COUNT, 512),
        x="requests that the rival may run at once",
        noun="requests",
        y="requests in a step over the rival's (×)",
        paper=COUNT,
        paper_is="vLLM",
        default=COUNT,
        judged=over_count,
        log_x=True,
    ),
    Regime(
        claim="faster-here",
        knob="pages",
        values=(100, 130, 160, 240, 320, 480),
        coarse=(100, 160, 320),
        x="memory of the job that is run here (pages of 16 tokens)",
        noun="pages",
        y="throughput over streaming practice (×)",
        default=160,
    ),
    Regime(
        claim="faster-on-trace",
        knob="pages",
        values=(4000, 8000, 16_000, 25_000, ROOMY),
        coarse=(8000, ROOMY),
        x="memory for keys and values (pages of 16 tokens)",
        noun="pages",
        y="throughput over streaming practice (×)",
        default=ROOMY,
        judged=trace_in,
        log_x=True,
    ),
    Regime(
        claim="beside-sorted",
        knob="spread",
        values=(0, 0.5, 1, 1.5),
        coarse=(0, 1),
        x="standard deviation of the logarithm of answers' lengths",
        y="throughput over streaming practice of a sorted job (×)",
        default=0,
        judged=sorted_with,
    ),
    *(
        Regime(
            claim=claim,
            knob="pages",
            values=(100, 130, 160, 240, 320, 480),
            coarse=(100, 160, 240, 320),
            x="memory of the job that is run here (pages of 16 tokens)",
            noun="pages",
            y=y,
            default=160,
            changes={"executor": "modelled"},  # as many tokens and steps; a test holds it
            series=ORDERS,
        )
        for claim, y in (
            ("less-recomputed", "saved over what LRU saves (×)"),
            ("shorter-lives", "joined pages' share of the steps over LRU's (×)"),
        )
    ),
    OVER_STEP,
)
