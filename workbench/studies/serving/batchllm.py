"""BatchLLM: a whole job's common prefixes found up front, scheduled group by group."""

from engine.cache.eviction import FurthestNextUse
from engine.inference.config import InferenceConfig
from engine.inference.policies.admission import Reserve
from engine.inference.policies.ordering.global_prefix import GlobalPrefix
from engine.inference.run import run
from engine.inference.workloads.shared_prefix import SharedPrefix
from workbench.studies.serving._batchllm import (
    DESCRIBED,
    STREAMING,
    TRACED,
    best_saving,
    faster_described,
    faster_here,
    faster_on_trace,
    larger_batches,
    less_recomputed,
    shorter_lives,
)
from workbench.study import Claim, Study

STUDY = Study(
    slug="batchllm",
    driver=run,
    config=InferenceConfig(
        workload=SharedPrefix(
            groups=10,
            per_group=8,
            prefix={"median": 160, "spread": 0.3, "longest": 400},
            suffix={"median": 24, "spread": 0.4, "longest": 96},
            output={"median": 24, "spread": 0.5, "longest": 96},
        ),
        ordering=GlobalPrefix(),
        eviction=FurthestNextUse(),
        admission=Reserve(),
        max_running=256,
        step_tokens=256,
        pages=160,
    ),
    views=("page_map", "request_lanes", "levels", "latency"),
    about=(
        "A whole job of prompts is known before it starts, and many begin alike. BatchLLM finds "
        "the common prefixes of all prompts, flattens their tree to one level so that the fewest "
        "tokens are computed, and runs the requests of one prefix together: its pages are filled "
        "once, joined by all of its group and gone when the group is done. Groups with much to "
        "decode go first, so their decodes fill the steps in which later groups compute prompts, "
        "and memory, not a count of requests, limits the batch. Streaming practice (first come "
        "first served, least recently used prefixes) runs the same job in the same memory."
    ),
    tries=(
        ("Streaming practice: FCFS and LRU", STREAMING),
        ("No prefix sharing at all", {"prefix_sharing": False}),
        ("Llama-3.1-8B on an A100", DESCRIBED),
    ),
    presets={"streaming": STREAMING, "described": DESCRIBED, "traced": TRACED},
    claims=(
        Claim(
            id="fewest-tokens",
            sentence="Flattening the global prefix tree leaves the fewest tokens to compute.",
            paper="dynamic programme within about 1% of the best",
            grade="exact",
            check=best_saving,
            broken={"ordering": "fcfs"},
        ),
        Claim(
            id="less-recomputed",
            sentence="Scheduled by group, prompts are computed nearly as seldom as possible.",
            paper="58.1% of prefill saved at best, 35.8% with LRU",
            grade="measured",
            check=less_recomputed,
            broken={"ordering": "fcfs", "eviction": "lru"},
        ),
        Claim(
            id="shorter-lives",
            sentence="A shared prefix lives in memory only while its group needs it.",
            paper="scheduling a group together shrinks the lifetime of common KV (abstract)",
            grade="measured",
            check=shorter_lives,
            broken=STREAMING,
        ),
        Claim(
            id="larger-batches",
            sentence="Batching by memory puts more requests into a step than batching by count.",
            paper="memory-centric token batching enlarges token batches (abstract)",
            grade="measured",
            check=larger_batches,
            broken={"max_running": 8},
        ),
        Claim(
            id="faster-here",
            sentence="On this machine the job is done sooner than with streaming practice.",
            paper="1.1× to 2× over vLLM (abstract)",
            grade="measured",
            timed=True,
            check=faster_here,
            broken=STREAMING,
        ),
        Claim(
            id="faster-described",
            sentence="An 8B model on an A100 does the job sooner than with streaming practice.",
            paper="1.1× to 2× over vLLM (abstract)",
            grade="modelled",
            check=faster_described,
            broken={"ordering": "fcfs", "eviction": "lru"},
        ),
        Claim(
            id="faster-on-trace",
            sentence="A trace of conversations, run as one job in scarce memory, is done sooner.",
            paper="1.1× to 2× over vLLM (abstract)",
            grade="modelled",
            check=faster_on_trace,
            broken={"ordering": "fcfs", "eviction": "lru"},
        ),
    ),
    limits=(
        "The gain is memory's: where the cache holds every prefix anyway, least recently used does "
        "as well, and on deep trees of conversations better, since one level of prefixes is all "
        "that is planned. The paper's fused kernel over shared and own pages is not modelled; our "
        "paged attention reads a shared prefix once for each request."
    ),
)
