"""Checks of EG-CFG: programs that pass, with signals and without, and beside as much sampling.

Shape letters: P problems, N samples of each.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.core.config import update
from engine.core.events import Mark
from engine.core.measure import serving
from engine.core.run import Run
from engine.reasoning.execution_guided.config import ExecutionGuidedConfig
from engine.reasoning.execution_guided.signal import Tried, signal
from engine.reasoning.repeated_sampling import repeated_sampling
from engine.reasoning.repeated_sampling.repeated_sampling import RepeatedSamplingConfig
from engine.reasoning.repeated_sampling.verifiers import Examples
from engine.reasoning.solving.scores import scores_of
from engine.tasks.list_programs import ListProgram
from engine.tasks.sandbox.interpreter import Outcome as Interpreted
from engine.tasks.sandbox.interpreter import run as interpreted
from workbench.claim import Check
from workbench.regime import At
from workbench.studies._read import share, votes
from workbench.study import Changes, Figure, Outcome, RunConfig

FAST, FULL = 30, 300  # problems
SAMPLES = 64  # of each, that the rival's choice is averaged over
PLAIN: Changes = {"guided": False}
NONE: Changes = {"guidance": 0.0}
ALONE: Changes = {"guidance": 1.0}
GRID = (0.5, 1.0, 3.0)  # of γ, in the authors' configuration, beside 0, which is plain decoding
APART = 10_000  # problems between those judged and those that γ is chosen on
NEARLY: Changes = {"guidance": 1.000001}
ATTACKS = (
    "import os",
    "x = open('/etc/passwd')",
    "x = ().__class__.__base__.__subclasses__()",
    "x = __import__('socket')",
    "while True: pass",
    "x = 9 ** 9 ** 9",
    "x = range(999999999)",
    "def f(): f()",
)


def sized(config: ExecutionGuidedConfig, fast: bool) -> ExecutionGuidedConfig:
    return update(config, {"problems": FAST if fast else FULL})


def scored(config: ExecutionGuidedConfig, run_config: RunConfig) -> dict[str, np.ndarray]:
    """Of each problem whether its program passes, and what it took."""
    return scores_of(run_config(config))


def gain(ours_P: np.ndarray, theirs_P: np.ndarray, expected: str, beside: str = "") -> Outcome:
    """How many more problems are solved, paired: all of the interval above none."""
    figure = Figure.mean(ours_P - theirs_P, "%")
    return Outcome(
        expected,
        f"{share(ours_P)} against {theirs_P.mean():.1%}: {figure.value:+.1%} "
        f"[{figure.low:+.1%}, {figure.high:+.1%}]; n = {len(ours_P)} problems{beside}",
        figure.low > 0,
        figure=figure,
        needed=0.0,
    )


def above_unguided(config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Guided as much as solves most of other problems, against plain decoding."""
    others = sized(update(config, {"first": config.first + APART, "fault": "none"}), fast)
    solved = {
        value: int(scored(update(others, {"guidance": value}), run_config)["right"].sum())
        for value in GRID
    }
    best = max(solved, key=solved.__getitem__)
    found = unguided(update(config, {"guidance": best}), run_config, fast)
    told = ", ".join(f"{count} with γ = {value:g}" for value, count in solved.items())
    return replace(found, measured=f"{found.measured}, γ = {best:g}; of as many others {told}")


def unguided(config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Guided against plain decoding, both by the likeliest token."""
    ours = scored(sized(config, fast), run_config)["right"]
    theirs = scored(sized(update(config, PLAIN), fast), run_config)["right"]
    return gain(ours, theirs, "more problems solved than by plain decoding (95% interval)")


def beyond_alone(config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Guided beyond the signal against the signal in the prompt alone."""
    ours = scored(sized(config, fast), run_config)["right"]
    alone = update(config, {**ALONE, "fault": "none"})
    theirs = scored(sized(alone, fast), run_config)["right"]
    return gain(ours, theirs, "more solved than by the signal in the prompt alone (95% interval)")


def above_sampling(config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Guided against best of n for as many positions of each problem, computed by the model."""
    return above_best_of(config, run_config, fast, "positions")


def above_best_of(
    config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool, spent: str
) -> Outcome:
    """The rival draws whole programs from one shared prompt and takes the first that passes the
    examples shown, which is what guided candidates are run on; `spent`: what it may spend as much
    of, positions or generated tokens."""
    config = sized(config, fast)
    scores = scored(config, run_config)
    accepted_PN, right_PN, each, prompts_P = samples(config)
    room_P = scores[spent].astype(float)
    if spent == "positions":  # the prompt once, and of each sample all tokens but the last
        room_P, each = room_P - prompts_P, each - 1
    n_P = np.clip(room_P // each, 1, accepted_PN.shape[1]).astype(int)
    theirs_P = chosen(accepted_PN, right_PN, n_P)
    used = f"; n of the rival {np.median(n_P):.0f} in the median, of {SAMPLES} at most"
    seen = f"; a candidate passed the examples in {scores['seen'].mean():.1%}"
    return gain(
        scores["right"], theirs_P, f"more solved than by best of n for as many {spent}",
        used + seen,
    )  # fmt: skip


def samples(config: ExecutionGuidedConfig) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Whole programs drawn without signals: which pass the examples shown, which are right, tokens
    of one in the mean, and of each problem's prompt."""
    names = ("model", "task", "problems", "first", "seed")
    rival = RepeatedSamplingConfig(
        **{name: getattr(config, name) for name in names},
        samples=SAMPLES, temperature=1.0, max_tokens=64, verifier=Examples(), pages=8192,
    )  # fmt: skip
    log = Run.execute(repeated_sampling.run, rival).log
    prompts_P = np.array([len(problem.prompt) + 1 for _, problem in config.drawn()])
    each = serving(log).tokens / (config.problems * SAMPLES)
    return log.blobs["accepted_PN"], log.blobs["right_PN"], each, prompts_P


def chosen(accepted_PN: np.ndarray, right_PN: np.ndarray, n_P: np.ndarray) -> np.ndarray:
    """[P] chance that the first accepted of n samples is right, over all choices of n of the N.

    None accepted among n: C(N - a, n) / C(N, n); else each accepted one is as likely the first.
    """
    total = accepted_PN.shape[1]
    found = []
    for a, both, n in zip(accepted_PN.sum(1), (accepted_PN * right_PN).sum(1), n_P, strict=True):
        places = np.arange(n)
        none = np.prod(np.maximum(total - a - places, 0) / (total - places))
        found.append((1 - none) * (both / a if a else 0.0))
    return np.array(found)


def same_as_plain(config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """γ = 0 against plain decoding; γ as good as 1, which takes both rows, against one row with the
    signal in its prompt."""
    config = sized(config, True)
    pairs = ((NONE, PLAIN), (NEARLY, ALONE))
    apart, count = 0, 0
    for ours, theirs in pairs:
        plain = votes(run_config(update(config, {**theirs, "fault": "none"})))
        found = votes(run_config(update(config, ours)))
        apart += sum(found[name] != answer for name, answer in plain.items())
        count += len(plain)
    return Outcome(
        "no program that differs: of γ = 0 from plain decoding's, of γ = 1 from the signal's alone",
        f"{apart} of {count} differ",
        apart == 0 and count > 0,
        figure=Figure.exact(apart, "programs that differ"),
        needed=0.0,
    )


def one_a_line(config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every signal made again from the log alone, by the interpreter without its sandbox: of the
    lines kept by then and that line's candidates, one before each line."""
    config = sized(config, True)
    log = run_config(config)
    problems = {f"p{number}": problem for number, problem in config.drawn()}
    kept: dict[str, list[str]] = {name: [] for name in problems}
    tried: dict[str, list[tuple[str, ...]]] = {name: [] for name in problems}
    open_lines: dict[str, int] = dict.fromkeys(problems, 0)  # signals since the last line
    wrong, count = 0, 0
    for mark in log.of(Mark):
        name = mark.lane.partition(".")[0]
        if mark.name == "outcome" and mark.text != "no line":
            tried[name].append(tuple(p.partition(" → ")[0] for p in mark.text.split("; ")))
        elif mark.name == "kept":
            kept[name].append(mark.text.partition(" → ")[0])
            open_lines[name] = 0
        elif mark.name == "signal":
            problem = problems[name]
            assert isinstance(problem, ListProgram)
            count += 1
            open_lines[name] += 1
            right = mark.text == again(problem, kept[name], tried[name])
            wrong += not right or open_lines[name] > 1
            tried[name] = []
    return Outcome(
        "one signal before each line, of the lines kept by then and the candidates of that line",
        f"{wrong} of {count} signals are others",
        wrong == 0 and count > len(problems),
        figure=Figure.exact(wrong, "signals"),
        needed=0.0,
    )


def again(problem: ListProgram, kept: Sequence[str], tried: Sequence[tuple[str, ...]]) -> str:
    """What the signal has to be."""

    def ran(lines: Sequence[str]) -> tuple[Interpreted, ...]:
        text = "\n".join([*kept, *lines])
        return tuple(interpreted(text, list(start)) for start, _ in problem.shown)

    now = ran(()) if kept else [Interpreted([list(start)], "") for start, _ in problem.shown]
    different = [Tried(lines, ran(lines)) for lines in dict.fromkeys(tried)]
    return signal(now, different, len(kept), [end for _, end in problem.shown])


def refused(config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Attacks tried as candidates of a person: each is to be refused, and the signal to say so."""
    passed, count = [], 0
    for attack in ATTACKS:
        log = run_config(update(config, {"problems": 1, "also": attack}))
        own = [mark.text for mark in log.of(Mark) if mark.lane.endswith(".also")]
        said = [text for text in own if not text.endswith("not run")]  # the code before it stopped
        signals = [mark.text for mark in log.of(Mark) if mark.name == "signal"]
        told = [text for text in signals if f"{attack} " in text]
        count += len(told)
        if (
            not said
            or not all(text.endswith("→ Refused Refused") for text in said)
            or not all(f"{attack} Refused Refused" in text for text in told)
        ):
            passed.append(attack)
    layers = log.opened.facts["isolation"] if log.opened is not None else []
    return Outcome(
        f"each of {len(ATTACKS)} attacks refused, and told so in each signal",
        f"{len(passed)} not, of {count} times; the process has {', '.join(layers) or 'no layers'}",
        not passed and count >= len(ATTACKS),
        figure=Figure.exact(len(passed), "attacks"),
        needed=0.0,
    )


def at(name: str, check: Check) -> At:
    """A check with a knob of the config there."""

    def there(
        config: ExecutionGuidedConfig, value: float, run_config: RunConfig, fast: bool
    ) -> Outcome:
        number = int(value) if name == "candidates" else value
        return check(update(config, {name: number}), run_config, fast)

    return there


def by_tokens(config: ExecutionGuidedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Beside best of n for as many generated tokens, whatever else the model computes."""
    return above_best_of(config, run_config, fast, "generated")
