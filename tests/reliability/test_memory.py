"""Memory refused at any allocation of a live engine: one error each, the pool whole.

The k-th allocation after prompts were handed in fails, k up to 300 with --full.
"""

import queue

import pytest

from engine.core.clock import WallClock
from engine.core.errors import BadInput
from engine.core.memory import OutOfMemory
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Built
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import sampling
from tests.engine.inference.audit import Reader
from tests.engine.inference.small import tiny_model
from tests.reliability.allocations import Allocations
from tests.workbench.toy_engine import ToyTokenizer
from workbench.live.live import LiveEngine
from workbench.live.pieces import SPENT

FEW, MANY = (1, 2, 3, 5, 20, 90, 150, 290), range(1, 301)
PROMPTS = ([3, 1, 4], [1, 5, 9, 2, 6], list(range(40)), [5, 3])
WISH = {"max_tokens": 30, "ignore_eos": True}
WAIT = 300.0


def asked(live: LiveEngine) -> list[tuple[str, int, str]]:
    """(why it ended, tokens, what was refused) of each prompt."""
    ends: queue.SimpleQueue = queue.SimpleQueue()
    counts = dict.fromkeys(range(len(PROMPTS)), 0)

    def tell(piece) -> None:
        counts[piece.index] += piece.token is not None
        if piece.reason:
            ends.put(piece)

    for place, prompt in enumerate(PROMPTS):
        live.ask(prompt, sampling(**WISH), tell, base=place)
    pieces = sorted((ends.get(timeout=WAIT) for _ in PROMPTS), key=lambda piece: piece.index)
    assert [piece.index for piece in pieces] == list(counts)
    return [(piece.reason, counts[piece.index], piece.refused) for piece in pieces]


@pytest.fixture
def live():
    config = InferenceConfig(pages=64, page_size=4, max_running=8, step_tokens=16)
    made = LiveEngine(config, "toy")
    executor = executor_for(config, tiny_model(), "toy")
    made.built = Built(executor, WallClock(), ToyTokenizer())
    yield made.start().wait()
    made.close()


def test_a_refused_allocation_costs_the_open_answers_and_nothing_else(live, monkeypatch, full):
    hook = Allocations(monkeypatch, "run live")
    whole = [("length", WISH["max_tokens"], "")] * len(PROMPTS)
    hook.arm(0)
    assert asked(live) == whole
    assert hook.count >= 300, "fewer allocations than are to fail"
    for refuse in MANY if full else FEW:
        hook.arm(refuse)
        came = asked(live)
        assert hook.count >= refuse, "never got so far"
        for reason, tokens, refused in came:
            assert (reason, refused) == ("error", SPENT) or tokens == WISH["max_tokens"], refuse
        assert any(refused == SPENT for _, _, refused in came), (refuse, came)
        hook.arm(0)
        assert asked(live) == whole, refuse
    reader = Reader(live.config.pages)
    reader.read(live.run.log.since(0))
    assert len(reader.free) + len(reader.parents) == live.config.pages


@pytest.mark.parametrize(
    "fault",
    [MemoryError("Unable to allocate 8 GiB"), RuntimeError("[..] can't allocate memory: 8 bytes")],
)
def test_in_a_run_it_is_one_line_of_input_too_large(fault):
    def driver(config, live):
        raise fault

    with pytest.raises(OutOfMemory, match="^out of memory .*ask for less") as told:
        Run.execute(driver, InferenceConfig())
    assert "\n" not in str(told.value) and isinstance(told.value, BadInput)
