"""The driver of Countdown by threads: each problem has a root thread, which may spawn children.

Emits for each problem, in its root's lane, the answer and the verdict of replaying it; counters of
the lane `problems` are `done`, `right`, and of the problem just done `tokens` and `critical`.
"""

from collections.abc import Sequence
from functools import partial

from engine.core.clock import WallClock
from engine.core.errors import BadInput
from engine.core.events import Level, Mark
from engine.core.machine import describe
from engine.core.run import Live
from engine.reasoning.spawning.config import SpawningConfig
from engine.reasoning.spawning.families import Calls, Family, Limits, Spawning
from engine.reasoning.threads.mind import Mind, open_mind
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.run import attempt, obey
from engine.tasks.countdown import CountdownProblem
from engine.tasks.countdown_search import even_problem
from engine.tasks.countdown_traces import (
    JOIN,
    NOTHING,
    NUMBERS,
    WORDS,
    child_prompt,
    ids,
    judge,
    messages,
    prompt,
    returned,
    steps,
    words_of,
)
from engine.tasks.task import Verdict

LANE = "problems"


def run(config: SpawningConfig, live: Live) -> None:
    """Solve the config's problems; `live` is where events go and commands come from."""
    live.report("opening the model", 0, 0)
    solve(config, open_mind(config.reasoning()), live)


def solve(config: SpawningConfig, mind: Mind, live: Live) -> None:
    """The same with a mind at hand. Raises BadInput where its tokens are no words of traces."""
    clock, model = WallClock(), mind.model
    if model.config.vocab != len(WORDS):
        raise BadInput(
            f"model {mind.name!r}: {model.config.vocab} tokens, but traces of Countdown have "
            f"{len(WORDS)} words; take a model that `workbench train countdown-imitated` makes"
        )
    live.open(
        config,
        clock,
        describe(),
        pages=config.pages,
        page_size=config.page_size,
        **mind.header(config.page_size),
        commands=["kill", "say"],
    )
    reasoner = Reasoner(config.reasoning(), mind, clock, live.emit)
    limits = Limits(config.window, config.children, config.total)
    spawning = Spawning(reasoner, countdown_calls(), limits, config.own_context)
    problems: dict[str, CountdownProblem] = {}
    ended, right = 0, 0
    while ended < config.problems:
        while len(problems) < config.problems and _room(config, spawning):
            _begin(config, spawning, problems)
        for command in live.poll(clock.now()):
            attempt(reasoner, partial(obey, reasoner, command), LANE)
        for family in spawning.step():
            written = words_of(family.root.tokens)
            verdict = verdict_of(config, problems[family.root.name], written)
            ended, right = ended + 1, right + verdict.right
            _tell(live, clock.now(), family, verdict, ended, right)
        live.report("solving", ended, config.problems)


def countdown_calls() -> Calls:
    """How traces of Countdown ask for children."""

    def prompts(given: list[int], written: list[int]) -> list[list[int]]:
        asked = messages(words_of(written))
        return [ids(child_prompt(words_of(given), message)) for message in asked]

    return Calls(
        NUMBERS[JOIN], prompts, lambda written: ids(returned(words_of(written))), ids([NOTHING])
    )


def verdict_of(
    config: SpawningConfig, problem: CountdownProblem, written: Sequence[str]
) -> Verdict:
    """Whether a root's own words end in a right answer."""
    if config.replay:
        return judge(problem, written)
    found = steps(written)
    right = found is not None and found[-1].result == problem.target
    return Verdict(right, f"states {found[-1].result}" if found else "gives no answer")


def _room(config: SpawningConfig, spawning: Spawning) -> bool:
    """Whether another problem may begin: always where none is under way."""
    families, running = spawning.families, len(spawning.board.running)
    return not families or (len(families) < config.together and running < config.threads)


def _begin(
    config: SpawningConfig, spawning: Spawning, problems: dict[str, CountdownProblem]
) -> None:
    """The next problem's root thread."""
    number = config.first + len(problems)
    problem = even_problem("test", number)
    name = f"p{number}"
    problems[name] = problem
    spawning.begin(name, ids(prompt(config.search, problem)), config.seed * 1_000_003 + number)


def _tell(live: Live, now: float, family: Family, verdict: Verdict, ended: int, right: int) -> None:
    """The answer, the verdict and the counters of a problem that is done."""
    name = family.root.name
    answer = steps(words_of(family.root.tokens))
    live.emit(Mark(now, name, "answer", " ".join(map(str, answer)) if answer else "none"))
    said = "right" if verdict.right else "wrong"
    live.emit(Mark(now, name, "verdict", f"{said}: {verdict.reason}"))
    depth = max(thread.depth for thread in (family.root, *family.children))
    for level, value in (
        ("done", ended), ("right", right), ("tokens", family.tokens), ("critical", depth),
        ("children", len(family.children)),
    ):  # fmt: skip
        live.emit(Level(now, LANE, level, float(value)))
