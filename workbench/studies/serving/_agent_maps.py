"""SAGA's maps: its claims with a knob at some value."""

from engine.core.config import update
from engine.fleet.agents import AgentsConfig
from workbench.regime import At
from workbench.studies.serving._saga import (
    ALONE,
    CACHED,
    CALM,
    FLEET,
    FLOODED,
    JUDGED,
    LOADS,
    ORDERS,
    RATE,
    RIVALS,
    STEPS,
    fleets,
    keeping,
    missing,
    quicker,
    settings,
    tenanted,
)
from workbench.study import Changes, Outcome, Regime, RunConfig

PAIR = 2  # replicas of a map over the load
MAPPED_STEP = 5.0  # seconds a step, of maps of tasks that fill the fleet; assumed


def near_optimum_at(config: AgentsConfig, spread: float, run: RunConfig, fast: bool) -> Outcome:
    """`near_optimum` on small tasks whose pauses scatter so."""
    loads = settings(update(config, {"engine.workload.spread": spread}), True)
    return missing(loads, run, fast)


def sooner_over(knob: str) -> At:
    """`sooner` on small tasks with `knob` at a value; all draws in full."""

    def at(config: AgentsConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        given = int(value) if knob == "engine.pages" else value
        return quicker(settings(update(config, {knob: given}), True), run, fast, RIVALS)

    return at


def sooner_of_fleet(config: AgentsConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """`sooner` on so many replicas, beside requests that go where their cache lies; small tasks
    in small."""
    loads, replicas = fleets(config, int(value)), int(value)
    if fast:
        each = {"count": 16 * replicas, "rate": 4.0 * replicas}
        few = {f"engine.workload.{name}": given for name, given in each.items()}
        loads = settings(update(config, {**few, "replicas": replicas}), True)
    return quicker(loads, run, fast, CACHED)


def sooner_at_load(config: AgentsConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """The same on two replicas, each asked for so many tasks a second; a dozen tasks in small."""
    asked: Changes = {"engine.workload.rate": value * PAIR}
    asked = {**asked, "engine.workload.count": 12} if fast else asked
    loads = {name: update(one, asked) for name, one in fleets(config, PAIR).items()}
    return quicker(loads, run, fast, CACHED)


def attained_within(config: AgentsConfig, part: float, run: RunConfig, fast: bool) -> Outcome:
    """`attained` within a part of the objective, on the load that a map's line has; of one replica
    and one draw in small."""
    load = next(name for name, changes in LOADS.items() if update(config, changes) == config)
    one = tenanted(config, 1 if fast else JUDGED)[load]
    return keeping({"": one}, {"": part * STEPS[load]}, run, fast, ALONE)


def attained_of_fleet(config: AgentsConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """`attained` on so many replicas, ours alone; one draw in small."""
    return keeping(tenanted(config, int(value)), STEPS, run, fast, ALONE)


def attained_over(knob: str) -> At:
    """The share of others' tasks that keep `MAPPED_STEP` where tasks fill two replicas, of all
    draws (one in small), with a knob at some value: `load` is a part of the load."""

    def at(config: AgentsConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        rate = config.engine.workload.rate  # type: ignore[attr-defined]
        load: Changes = {"engine.workload.rate": rate * value}
        turned = load if knob == "load" else {"engine.workload.flood": value}
        one = update(config, {**FLOODED, **turned})
        return keeping({"": one}, {"": MAPPED_STEP}, run, fast, ALONE)

    return at


BESIDE = {
    f"{load}, {order}": {**LOADS[load], **ORDERS[order]}
    for load in LOADS
    for order in ("ours", "in order of arrival")
}
REGIMES = (
    Regime(
        claim="sooner",
        knob="replicas",
        values=(1, 2, 4, 8),
        coarse=(1, 2),
        x="replicas, each with the same load",
        y="time of a task by requests sent where their cache lies over ours (×)",
        less="beside that rival alone",
        paper=FLEET,
        paper_is="the paper's fleet",
        default=FLEET,
        judged=sooner_of_fleet,
        log_x=True,
        noun="replicas",
    ),
    Regime(
        claim="attained",
        knob="replicas",
        values=(1, 2, 4),
        coarse=(1,),
        x="replicas, each with the same load",
        y="part of other tenants' tasks that keep the objective",
        default=JUDGED,
        judged=attained_of_fleet,
        log_x=True,
        noun="replicas",
    ),
    Regime(
        claim="near-optimum",
        knob="engine.workload.spread",
        values=(0.0, 0.25, 0.5, 1.0, 1.5, 2.0),
        coarse=(0.5, 2.0),
        x="standard deviation of a pause's logarithm",
        y="tokens missed over those of Bélády's rule (×)",
        less="small tasks",
        default=0.5,
        judged=near_optimum_at,
    ),
    Regime(
        claim="sooner",
        knob="engine.pages",
        values=(350, 400, 500, 700, 1000, 1500, 2500),
        coarse=(400, 2500),
        x="pages of each replica's cache",
        y="time of a task by the quickest rival over ours (×)",
        less="small tasks",
        default=400,
        judged=sooner_over("engine.pages"),
        log_x=True,
        noun="pages",
    ),
    Regime(
        claim="sooner",
        knob="engine.workload.pause",
        values=(0.1, 0.5, 1.0, 2.0, 5.0, 10.0),
        coarse=(0.1, 1.0),
        x="median pause of the middle tool (s)",
        y="time of a task by the quickest rival over ours (×)",
        less="small tasks",
        default=1.0,
        judged=sooner_over("engine.workload.pause"),
        log_x=True,
    ),
    Regime(
        claim="sooner",
        knob="load",
        values=(CALM, 0.3, RATE),
        coarse=(CALM, RATE),
        x="tasks a second of each replica, which answers 0.2",
        y="time of a task by requests sent where their cache lies over ours (×)",
        less="two replicas, beside that rival alone",
        paper=CALM,
        paper_is="the paper's load of tenants",
        default=RATE,
        judged=sooner_at_load,
        log_x=True,
    ),
    Regime(
        claim="attained",
        knob="objective",
        values=(0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.85, 1.0, 1.5),
        coarse=(0.35, 1.0),
        x="objective over that which a fleet without caches keeps as the paper's vLLM does",
        y="part of other tenants' tasks that keep the objective",
        less="each workload by itself",
        default=1.0,
        series=LOADS,
        judged=attained_within,
        log_x=True,
    ),
    *(
        Regime(
            claim="attained",
            knob=knob,
            values=values,
            coarse=coarse,
            x=x,
            y="part of other tenants' tasks that keep the objective",
            less="of two replicas that are filled",
            paper=paper,
            paper_is="the paper's load",
            series=BESIDE,
            judged=attained_over(knob),
            log_x=log_x,
        )
        for knob, values, coarse, x, paper, log_x in (
            (
                "load",
                (0.1, 0.25, 0.5, 1.0, 2.0),
                (0.25, 1.0),
                "tasks a second over those that fill it, within 5 s a step",
                CALM / RATE,
                True,
            ),
            (
                "flood",
                (0.25, 0.5, 0.7, 0.9),
                (0.25, 0.7),
                "part of the tasks that one tenant of four brings, within 5 s a step",
                None,
                False,
            ),
        )
    ),
)
