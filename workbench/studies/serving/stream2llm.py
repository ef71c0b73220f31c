"""Stream2LLM: context is computed while the rest of it is still being retrieved."""

from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.policies.ordering.priority import Priority
from engine.inference.run import run
from engine.inference.workloads.streamed import Streamed
from engine.inference.workloads.synthetic import Lengths
from workbench.studies.serving._stream2llm import (
    BY_QUERY,
    COMES,
    CRAWLED,
    HERE,
    LONG,
    SEARCHED,
    TIGHT,
    WAITING,
    at,
    first_tokens,
    kept_at,
    parity_at,
    pressed_at,
    same_rate,
    same_tokens,
    sooner,
    under_pressure,
)
from workbench.study import Break, Claim, Comparison, Regime, Reported, Study

FORGOTTEN = Break({"prefix_sharing": False}, True, "nothing is kept of the input before")
NAMED = Comparison(("without streaming",), tuple(COMES), "context streams or it does not")
STALE = Break(
    {"workload.fault": "kept"}, True, "inputs that were updated are computed all the same"
)

STUDY = Study(
    slug="stream2llm",
    driver=run,
    config=InferenceConfig(
        model="llama-3.1-8b",
        dtype="bfloat16",
        executor=Modelled(device="h200-sxm", tensor_parallel=2),
        workload=Streamed(
            count=12,
            rate=4.0,
            chunks=8,
            chunk=Lengths(median=300, spread=1.6, longest=28_000),
            gap=1.05,
            gap_spread=0.9,
            first="last_chunk",
        ),
        ordering=Priority(displace=False),
        pages=20_000,
        max_running=256,
        step_tokens=2048,
    ),
    views=("request_lanes", "page_map", "levels", "latency"),
    about=(
        "A query whose context is retrieved waits twice: until all of it is found, and until the "
        "model has read it. Stream2LLM lets the model read what is there. Context grows by "
        "chunks, or a list of chunks changes when a better one is found; what an input has in "
        "common with the one before it, from its beginning on, is kept, and the rest is computed "
        "again. When many queries share a device they contend for its time and memory, and what "
        "was computed ahead may be forgotten before it is used: who goes first then decides."
    ),
    tries=(
        ("Wait for all context", WAITING),
        ("Searches like the paper's, whose context is updated", SEARCHED),
        ("Memory for seven queries, the oldest first", {**TIGHT, **BY_QUERY}),
    ),
    presets={"here": HERE, "waiting": WAITING, "tight": {**TIGHT, **BY_QUERY}},
    claims=(
        Claim(
            id="same-tokens",
            sentence="However its context came, a query is answered as if all had been there.",
            paper="longest common prefix matching to minimize redundant computation when input "
            "changes dynamically (abstract)",
            grade="exact",
            check=same_tokens,
            reported=Reported(1.0, "equal", unit="%"),
            finding="reproduced",
            broken=(
                Break(
                    {"workload.fault": "lost"},
                    True,
                    "the last state of an input does not replace the one before",
                ),
            ),
        ),
        Claim(
            id="first-token",
            sentence="The first token comes up to 11 times as soon.",
            paper="streaming architecture delivers up to 11x TTFT improvements (abstract)",
            grade="modelled",
            check=first_tokens,
            reported=Reported(11.0, none=1.0, unit="×"),
            held=NAMED,
            finding="undecided",
            quick="weaker",
            fails=("full",),
            why="since the last chunk came, in the median, on two H200 with crawls and searches "
            "like those that the authors' published tables describe, at the most queries a second "
            "there. Of context that grows (crawls, four a second) 7.1 [5.6, 9.1], where those "
            "tables have 11.0. Of context that is updated (searches, two a second), by which the "
            "finding goes, 1.01 [0.90, 1.14], where they have 1.4: what comes behind an update is "
            "computed anew, which leaves little of the devices' time. Where in the list updates "
            "fall, which no table says, decides that: anywhere is ours; in its second half it is "
            "1.4, in its last place 2.3 (map). Since the first chunk hardly anything is gained, as "
            "retrieval takes most of it. The small check asks context that grows",
            broken=(FORGOTTEN, Break(WAITING)),
        ),
        Claim(
            id="same-rate",
            sentence="As many queries a second are served as without streaming.",
            paper="all while maintaining throughput parity with non-streaming baselines (abstract)",
            grade="modelled",
            check=same_rate,
            reported=Reported(1.0, tolerance=0.05, unit="×"),
            held=NAMED,
            finding="reproduced",
            why="1.00 of context that is updated, which the small check asks, and 1.01 [0.99, "
            "1.03] of context that grows, of searches and crawls like the authors' tables' on "
            "devices that are never idle: half of the updates come within 40 ms of the one before, "
            "so that most inputs are replaced before they are computed. With updates half a second "
            "apart, on one H100, it was 0.92 [0.90, 0.94]; where none replaces another it is 0.3",
            broken=(STALE,),
        ),
        Claim(
            id="under-pressure",
            sentence="Where memory is short, scheduling by chunks keeps the slowest waiting least.",
            paper="cost-aware scheduling providing critical benefits under memory pressure "
            "(abstract)",
            grade="modelled",
            check=under_pressure,
            reported=Reported(1.0, none=1.0, unit="×"),
            held=Comparison(("in the order of queries", "without streaming"), tuple(COMES)),
            finding="undecided",
            quick="reproduced",
            fails=("full",),
            why="a direction, under the authors' own pressure: retrieval ten times as long of 600 "
            "crawls, thirty times of 500 searches. In the order of their published scheduler, "
            "complete context first and then who got a chunk longest ago, the slowest hundredth of "
            "crawls waits 2.30 [1.60, 3.30] times less than in the order of queries and 1.89 "
            "[1.40, 2.54] less than without streaming (their table: 12.9 and 9.1); of searches "
            "4.70 [3.30, 6.69] and 0.93 [0.72, 1.21] (theirs: 9.5 and 1.8), by which the finding "
            "goes: each update is computed anew where memory has lost what was before it. Most "
            "chunks first is worse, there as here. The small check asks a quarter of the crawls "
            "in a quarter of the memory",
            broken=(
                Break({"workload.fault": "newest"}, True, "who got a chunk last goes first"),
                Break(BY_QUERY),
            ),
        ),
    ),
    regimes=(
        Regime(
            claim="first-token",
            knob="workload.chunks",
            values=(1, 4, 8, 16, 32),
            coarse=(4, 16),
            x="chunks of a query; a query every two seconds",
            y="time to a first token without streaming over ours (×)",
            less="one draw of 60 queries",
            default=8,
            changes={**CRAWLED, "workload.rate": 0.5},
            judged=at("workload.chunks", sooner),
            log_x=True,
        ),
        Regime(
            claim="first-token",
            knob="workload.rate",
            values=(0.25, 0.5, 1, 2, 4, 8),
            coarse=(1, 4),
            x="queries a second; the paper's tables end at 4 of crawls, at 2 of searches",
            y="time to a first token without streaming over ours (×)",
            less="one draw of 60 queries",
            default=4,
            series=COMES,
            judged=at("workload.rate", sooner),
            log_x=True,
        ),
        Regime(
            claim="first-token",
            knob="workload.kept",
            values=(0, 0.25, 0.5, 0.75, 0.9),
            coarse=(0, 0.75),
            x="part of the list, from its first on, that no update changes",
            y="time to a first token without streaming over ours (×)",
            default=0,
            changes=SEARCHED,
            judged=kept_at,
        ),
        Regime(
            claim="under-pressure",
            knob="pages",
            values=(25_000, 50_000, 75_000, 100_000, 120_000),
            coarse=(50_000, 100_000),
            x="pages of the cache; 300 queries are there at once",
            y="wait of the slowest hundredth of the best plain way over ours (×)",
            less="one draw",
            default=100_000,
            series=LONG,
            judged=pressed_at,
            log_x=True,
        ),
        Regime(
            claim="first-token",
            knob="pages",
            values=(6000, 12_500, 25_000, 50_000, 100_000),
            coarse=(6000, 100_000),
            x="pages of the cache; a query has about 560",
            y="time to a first token without streaming over ours (×)",
            less="one draw of 60 queries",
            default=100_000,
            changes=CRAWLED,
            judged=at("pages", sooner),
            log_x=True,
        ),
        Regime(
            claim="same-rate",
            knob="workload.chunks",
            values=(1, 2, 4, 8, 16),
            coarse=(2, 8),
            x="chunks of a query, or updates of its list; the devices are never idle",
            y="queries a second with streaming over those without (×)",
            less="each mode by itself",
            series=COMES,
            judged=parity_at("workload.chunks"),
            log_x=True,
        ),
        Regime(
            claim="same-rate",
            knob="workload.rate",
            values=(1, 2, 4, 8, 16, 40),
            coarse=(4, 40),
            x="queries a second",
            y="queries a second with streaming over those without (×)",
            less="each mode by itself",
            default=40,
            series=COMES,
            judged=parity_at("workload.rate"),
            log_x=True,
        ),
    ),
    limits=(
        "The abstract was read, and the tables and configs of the published code, not the paper; "
        "its two traces of web crawling and nearest-neighbour search are not here: chunks come at "
        "times and with tokens whose distributions have those tables' means and spreads, "
        "an update puts another chunk at a random place of the list, and a query's own question "
        "stands before its context, not behind it. Computing context ahead is "
        "done by requests of one token, as instances that only prefill do; between chunks a "
        "query's pages are cached, not held, so that a query under pressure loses pages from its "
        "end, not all of them, and those are computed again: swapping them to the host where that "
        "is cheaper, the other half of the paper's preemption, is not built. Common prefixes are "
        "found up to whole pages."
    ),
)
