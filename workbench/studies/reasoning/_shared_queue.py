"""Checks of Hogwild's divided queue: steps of workers who read each other, of one who is alone, and
of as many whose shares were fixed beforehand."""

from engine.core.config import update
from engine.core.intervals import of_mean, wilson
from engine.models.loading.find import beside
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import open_model
from engine.reasoning.threads.shared_work import MODEL as SHARED
from engine.reasoning.threads.shared_work import shared, work
from engine.tasks.square_queue import QueueProblem, queues
from workbench.study import Figure, Outcome, RunConfig

CREW = 4  # workers who divide a queue


def fewer_steps(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """One worker and four on the same test problems."""
    return steps_of(config, CREW, run_config, fast)


def steps_of(config: ReasoningConfig, crew: float, run_config: RunConfig, fast: bool) -> Outcome:
    """One worker and so many on the same test problems, each pair a session of its own.

    The model was trained for the contiguous layout; under one that shares nothing it gets that.
    """
    config, problems = dividing(config), asked(fast)
    loaded = open_model(shared(config))
    (one_P, steps_P), (four_P, fewer_P) = (
        work(update(config, {"workers": int(workers)}), loaded, problems).T for workers in (1, crew)
    )
    low_1, high_1 = of_mean((fewer_P - steps_P)[:, None])
    low, high, n = float(low_1[0]), float(high_1[0]), len(problems)
    rights, fewer = [], of_mean((four_P - one_P)[:, None])[0][0]
    for right_P in (one_P, four_P):
        bounds = wilson(float(right_P.sum()), n)
        rights.append(f"{right_P.mean():.1%} [{bounds[0]:.1%}, {bounds[1]:.1%}]")
    return Outcome(
        f"{crew:g} workers take fewer steps than one until all is said, the 95% interval of the "
        "difference below zero, and solve no fewer problems (95% interval; 2 points are let pass)",
        f"{fewer_P.mean():.1f} steps against {steps_P.mean():.1f}, difference "
        f"{(fewer_P - steps_P).mean():+.1f} [{low:+.1f}, {high:+.1f}]; solved {rights[1]} against "
        f"{rights[0]}; n = {n} problems",
        high < 0 and fewer >= -0.02,
        figure=Figure.mean(fewer_P - steps_P, "steps"),
        needed=0.0,
    )


def dividing(config: ReasoningConfig) -> ReasoningConfig:
    """`config` with the model that was taught to divide a queue."""
    apart = config.layout.kind == "independent"
    layout = "independent" if apart else "contiguous"
    return update(config, {"model": beside(config.model, SHARED), "layout": layout,
                           "sampling.temperature": 0.0, "requests": 0})  # fmt: skip


def asked(fast: bool) -> list[QueueProblem]:
    """Test problems of a check."""
    return queues("test", 40 if fast else 400)


def fixed_shares(problem: QueueProblem, crew: int) -> int:
    """Steps of as many workers who each know from the start which entries are theirs, read nobody
    and never err: a character a step, the longest share's. Counted: the model was taught no share
    of fewer than three entries."""
    said = [len(problem.said(place)) for place in range(len(problem.entries))]
    return max(sum(said[first::crew]) for first in range(crew))


def over_fixed_shares(config: ReasoningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Four workers who read each other against four who need not."""
    return over_shares_of(config, CREW, run_config, fast)


def over_shares_of(
    config: ReasoningConfig, crew: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """So many who read each other against as many who need not."""
    config, problems = update(dividing(config), {"workers": int(crew)}), asked(fast)
    _, ours_P = work(config, open_model(shared(config)), problems).T
    theirs = [fixed_shares(problem, int(crew)) for problem in problems]
    figure = Figure.mean(ours_P - theirs, "steps")
    return Outcome(
        f"fewer steps than {crew:g} workers with shares fixed beforehand (95% interval)",
        f"{ours_P.mean():.1f} steps against {sum(theirs) / len(theirs):.1f}, difference "
        f"{figure.value:+.2f} [{figure.low:+.2f}, {figure.high:+.2f}]; n = {figure.n} problems",
        figure.high < 0,
        figure=figure,
        needed=0.0,
    )
