"""Rates of CloudMatrix-Infer's two phases: an instance that prefills and one that decodes, each
with more to do than it can, beside the paper's tables."""

from collections.abc import Iterator

from engine.core.config import update
from engine.core.events import Span, Token
from engine.core.log import Log
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.hardware.device import device
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.wide_expert_cost import WideExpertCost
from engine.inference.executors.wide_experts import WideExperts
from engine.inference.run import run as run_engine
from engine.models.kv import cache_spec
from engine.models.loading.find import find
from workbench.study import Changes

DIES = 2  # of an NPU, as the paper counts
# Prompt, answer, requests of an NPU at once, milliseconds a token, tokens/s and NPU, as reported.
REPORTED = (
    (4096, 256, 96, 49.4, 1943.0),
    (4096, 256, 24, 24.6, 974.0),
    (4096, 256, 8, 14.9, 538.0),
    (2048, 256, 112, 47.4, 2360.0),
    (1024, 1024, 128, 46.8, 2733.0),
)
SHARE = 0.7  # of drafted tokens that hold, as the paper sets it
DRAFTS: Changes = {"speculation": {"kind": "ngram", "tokens": 1, "acceptance": SHARE}}
PROMPTS = 64  # of 4,096 tokens in a step of an instance: 16,384 tokens an NPU
PROMPT = 4096
BATCHES = (*range(2, 32, 2), *range(32, 512, 8))  # of an NPU, among which the best is looked for
USED = 0.9  # of a device's memory


def executor_of(config: FleetConfig) -> WideExperts:
    """How the study's replicas are executed."""
    assert isinstance(config.engine.executor, WideExperts)
    return config.engine.executor


def prefilling(config: FleetConfig) -> InferenceConfig:
    """One instance that prefills: 16 NPUs, whose devices share a step's tokens."""
    changes: Changes = {
        "workload": {"kind": "steady", "count": 3 * PROMPTS, "prompt": PROMPT, "output": 1},
        "executor.own": executor_of(config).dies,
        "step_tokens": PROMPTS * PROMPT,
        "pages": 4 * PROMPTS * -(-PROMPT // config.engine.page_size),
        "max_running": 4 * PROMPTS,
        "batching": "prefill_first",
        "prefix_sharing": False,
    }
    return update(config.engine, changes)


def decoding(config: FleetConfig, prompt: int, answer: int, batch: int) -> InferenceConfig:
    """One device of an instance that decodes, its share of `batch` requests of an NPU."""
    own = batch // DIES
    pages = own * -(-(prompt + answer + 8) // config.engine.page_size)
    changes: Changes = {
        "workload": {"kind": "steady", "count": own, "prompt": prompt, "output": answer},
        "executor.dies": getattr(config.pools, "decode_dies", 320),
        "executor.own": 1,
        "executor.drafting_layers": 1,
        "step_tokens": 65_536,
        "pages": pages,
        "max_running": own,
        "batching": "prefill_first",
        "prefix_sharing": False,
        **DRAFTS,
    }
    return update(config.engine, changes)


def steps(log: Log) -> Iterator[tuple[Span, int, int]]:
    """Each step with the answers it goes on with and the prompts' tokens it computes."""
    for span in log.of(Span):
        if span.lane == "engine" and span.name == "step":
            decodes, prompts = (int(part.partition("=")[2]) for part in span.tag.split()[:2])
            yield span, decodes, prompts


def prefill_rate(config: InferenceConfig) -> float:
    """Prompt tokens a second and NPU of an instance that has more to do than it can."""
    log = Run.execute(run_engine, config, seed=config.seed).log
    own = [(span.time - span.start, tokens) for span, _, tokens in steps(log) if tokens]
    assert isinstance(config.executor, WideExperts)
    return sum(t for _, t in own) / sum(s for s, _ in own) / config.executor.own * DIES


def decode_rate(config: InferenceConfig) -> tuple[float, float]:
    """Tokens a second and NPU, and seconds between a request's, while all requests decode."""
    log = Run.execute(run_engine, config, seed=config.seed).log
    count = config.max_running
    own = [span for span, decodes, prompts in steps(log) if decodes == count and not prompts]
    begin, end = own[0].start, own[-1].time
    said = sum(begin < token.time <= end and token.accepted for token in log.of(Token))
    rate = said / (end - begin)
    return rate * DIES, count / rate


def best_rate(
    config: FleetConfig, dies: int, most: float, prompt: int = PROMPT
) -> tuple[float, int]:
    """Tokens a second and NPU of `dies` devices that share experts, after prompts of `prompt`
    tokens, of the batch with which most come within `most` seconds a token and which its memory
    holds; and that batch."""
    how, model, found = executor_of(config), find(config.engine.model).config, (0.0, 0)
    machine, per = device(how.device), cache_spec(model, "bfloat16").bytes_per_token()
    for shared in {min(how.shared, dies), dies}:  # the shared expert somewhere, or everywhere
        changes = {"dies": dies, "own": 1, "shared": shared, "drafting_layers": 1}
        cost = WideExpertCost(model, machine, how.model_copy(update=changes))
        for batch in BATCHES:
            own = batch // DIES
            if cost.weights + own * (prompt + 256) * per > USED * machine.capacity:
                break
            shape = cost.counted(0, 0, [(2, prompt)] * own, 2 * own)
            each = (cost.total(shape)[0] + how.per_step) / (1 + SHARE)
            if each <= most:
                found = max(found, (batch / each, batch))
    return found
