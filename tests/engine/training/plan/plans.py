"""Plans that tests draw from: every schedule at a size that suits it."""

from hypothesis import settings
from hypothesis import strategies as st

from engine.core.config import kinds
from engine.training.plan.actions import Plan
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.times import Costs, timed
from engine.training.plan.transfers import lower

LOOSE = settings(deadline=None)  # a first example compiles the walk
MADE = [kind for kind in kinds(PipelineSchedule) if kind != "as_written"]


def made(kind: str, ranks: int, microbatches: int, limit: float = float("inf")) -> Plan:
    """The plan of a schedule with its defaults; microbatches are rounded up where it asks so."""
    policy = kinds(PipelineSchedule)[kind]()
    if kind == "interleaved_1f1b":
        microbatches = -(-microbatches // ranks) * ranks
    return policy.plan(Pipe(ranks, microbatches, limit=limit))


def lowered(given: Plan) -> Plan:
    times = timed(given, Costs.even(given))
    return lower(given, times.start, times.stop)


def plans(least_ranks: int = 1) -> st.SearchStrategy[Plan]:
    return st.builds(made, st.sampled_from(MADE), st.integers(least_ranks, 6), st.integers(1, 12))
