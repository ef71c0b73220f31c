"""Checks of Next-Frame Diffusion's claims: games played with speculative frames and without."""

from dataclasses import replace

import numpy as np

from engine.core.config import update
from engine.core.events import Blob, Level
from engine.core.log import Log
from engine.diffusion.frames.run import ALLOWED, FILM, PASSES, SECONDS, FramesConfig
from workbench.regime import At
from workbench.study import Changes, Check, Figure, Outcome, RunConfig

SEEDS = 5  # games, each with a player and noise of its own
GAMES, MANY = 20, 60  # in a full check; where frames are judged, since games differ by far
FEWER = (1, 2, 4)  # steps of a frame that waits
LOST = 0.05  # of the frames: no fewer are allowed
ALONE: Changes = {"ahead": 0, "fault": "none"}


def played(
    config: FramesConfig, run_config: RunConfig, fast: bool, games: int = GAMES
) -> list[Log]:
    """A game of each seed: 16 frames in a fast check, 64 in a full one; 5 games, or `games`."""
    seeds = range(config.seed, config.seed + (SEEDS if fast else games))
    size = 16 if fast else 64
    return [run_config(update(config, {"seed": seed, "frames": size})) for seed in seeds]


def levels(log: Log, name: str) -> list[float]:
    return [level.value for level in log.of(Level) if level.name == name]


def means(logs: list[Log], name: str) -> list[float]:
    """The mean of a level over each game's frames."""
    return [float(np.mean(levels(log, name))) for log in logs]


def shown(log: Log) -> list[np.ndarray]:
    """The cells of every frame shown."""
    named = [blob for blob in log.of(Blob) if blob.name.startswith(FILM)]
    return [log.blobs[b.ref] for b in named if b.name.split("/")[2] in ("asked", "kept")]


def same_frames(config: FramesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Frames with speculation that differ from those made one after another, each for the action
    that was told."""
    ours = played(config, run_config, fast)
    theirs = played(update(config, ALONE), run_config, fast)
    games = zip(ours, theirs, strict=True)
    pairs = [pair for a, b in games for pair in zip(shown(a), shown(b), strict=True)]
    other = sum(not np.array_equal(one, two) for one, two in pairs)
    return Outcome(
        "every frame equal to the one made once its action is told",
        f"{len(pairs) - other} of {len(pairs)} equal",
        other == 0,
        figure=Figure.exact(other, "frames that differ"),
        needed=0.0,
    )


def ratio(expected: str, figure: Figure) -> Outcome:
    """Whether all of a ratio's interval is above one."""
    return Outcome(
        expected,
        f"{figure.value:.2f}× ({figure.low:.2f} to {figure.high:.2f}, {figure.n} games)",
        figure.low > 1.0,
        figure=figure,
        needed=1.0,
    )


def fewer_passes(config: FramesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Passes that a shown frame waits for, without speculation over with."""
    ours = means(played(config, run_config, fast), PASSES)
    theirs = means(played(update(config, ALONE), run_config, fast), PASSES)
    return ratio("fewer passes to wait for than without", Figure.ratio(theirs, ours))


def over_fewer_steps(config: FramesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Passes that a shown frame waits for, of frames that wait and are made in fewer steps, over
    with speculation: of the least steps that lose no frames by it."""
    ours = played(config, run_config, fast, MANY)
    told, least = [], float(np.mean(means(ours, ALLOWED)))
    for steps in FEWER:
        plain = update(config, {**ALONE, "steps": steps, "lag": steps})
        theirs = played(plain, run_config, fast, MANY)
        allowed = float(np.mean(means(theirs, ALLOWED)))
        told.append(f"{steps} steps {allowed:.1%} allowed")
        if allowed >= least:
            break
    else:
        return fewer_passes(config, run_config, fast)
    passes = Figure.ratio(means(theirs, PASSES), means(ours, PASSES))
    found = ratio("fewer passes to wait for than without, in as few steps as are as good", passes)
    said = f"{found.measured}; {', '.join(told)}, with speculation {least:.1%}"
    return replace(found, measured=said)


def frame_rate(config: FramesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Frames a second, over those without speculation, in games played in turn."""
    played(update(config, {"seed": config.seed + 1000}), run_config, True)  # warm
    ours, theirs = [], []
    for seed in range(config.seed, config.seed + (SEEDS if fast else GAMES)):
        here = update(config, {"seed": seed, "frames": 16 if fast else 64})
        for found, how in ((ours, here), (theirs, update(here, ALONE))):
            found.append(sum(levels(run_config(how), SECONDS)))
    return ratio("more frames a second than without", Figure.ratio(theirs, ours))


def difference(expected: str, ours: list[float], theirs: list[float], least: float) -> Outcome:
    """How many more frames are allowed, paired by game: all of the interval above `least`."""
    figure = Figure.mean([a - b for a, b in zip(ours, theirs, strict=True)], "%")
    return Outcome(
        expected,
        f"{np.mean(ours):.1%} against {np.mean(theirs):.1%}: {figure.value:+.1%} "
        f"({figure.low:+.1%} to {figure.high:+.1%}, {figure.n} games)",
        figure.low > least,
        figure=figure,
        needed=least,
    )


def as_good(config: FramesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Frames that the game allows, less those where each frame sees clean ones alone."""
    clean = update(config, {**ALONE, "lag": config.steps})
    ours, theirs = (means(played(how, run_config, fast, MANY), ALLOWED) for how in (config, clean))
    return difference("hardly fewer frames allowed than from clean ones", ours, theirs, -LOST)


def few_steps(config: FramesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Frames that the game allows, less those of the teacher in as many steps."""
    clean = update(config, {"ahead": 0, "lag": config.steps})
    taught = update(clean, {"model": "teacher", "fault": "none"})
    ours, theirs = (means(played(how, run_config, fast, MANY), ALLOWED) for how in (clean, taught))
    return difference("more frames allowed than the teacher's", ours, theirs, 0.0)


def at(name: str, check: Check) -> At:
    """A check with a knob of the config there."""

    def there(config: FramesConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
        return check(update(config, {name: value}), run_config, fast)

    return there


def at_steps(config: FramesConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    """Distillation's gain with so many steps."""
    here = update(config, {"lag": 1, "steps": int(value)})
    return few_steps(here, run_config, fast)
