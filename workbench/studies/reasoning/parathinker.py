"""ParaThinker: paths of thought side by side, and a summary over the caches of all of them."""

import numpy as np

from engine.core.config import update
from engine.core.events import Span
from engine.core.plot import Plot
from engine.reasoning.paths.parallel_paths import PathsConfig, run
from engine.reasoning.solving.scores import scores_of
from workbench.studies.reasoning._parathinker import (
    CLOSE,
    DEPTH,
    EACH,
    FIRST,
    TOTAL,
    WIDE,
    beside_depth,
    equal_total,
    once,
    said,
    said_by,
    union,
    wider,
    width_wins,
)
from workbench.study import (
    Break,
    Changes,
    Claim,
    Figure,
    Outcome,
    Regime,
    Reported,
    RunConfig,
    Study,
    Sweep,
    Taught,
)

PATHS = Taught({"model": "countdown-paths"})
SHORT = 40  # tokens of a path whose time is taken
LATER = 1.071  # times one path's latency, in the paper
ALONE: Changes = {"width": 1}
BLIND: Changes = {"sees": 1}
AGAIN: Changes = {"reuse": False}


def overhead(config: PathsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Steps of one path and of eight in turns, of the summary over eight, and its first one."""
    return of_length(config, SHORT, run_config, fast)


def of_length(config: PathsConfig, tokens: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of paths of so many tokens."""
    length = int(tokens)
    size = {"problems": 1, "together": 1, "total": 0, "budget": length, "finish": "last"}
    times: dict[str, list[float]] = {"one": [], "eight": [], "summary": [], "first": []}
    shares, whole = [], []  # of a problem: the summary's part, and all steps over one path's
    for turn in range(6 if fast else 24):
        for name, width in (("one", 1), ("eight", WIDE)):
            changes = {**size, "width": width, "first": FIRST + turn}
            log = run_config(update(config, changes))
            steps = [span.time - span.start for span in log.of(Span) if span.name == "step"][2:]
            count = int(scores_of(log)["summary"][0])
            times[name] += steps[:-count]
            if width == 1:
                each = float(np.median(steps[:-count]))
            else:
                times["summary"] += steps[-count:]
                times["first"].append(steps[-count])
                shares.append(sum(steps[-count:]) / sum(steps[:-count]))
                whole.append(sum(steps) / (each * len(steps[:-count])))
    # Lower quartiles: whatever interrupts a step of a millisecond is no part of it.
    one, *others = (float(np.quantile(times[name], 0.25)) for name in times)
    eight, summary, first = (seconds / one for seconds in others)
    all_ = Figure.ratio(whole, [1.0] * len(whole))
    return Outcome(
        f"{WIDE} paths and their summary take at most {LATER:g}× the time of one path of as many "
        "tokens (95% interval)",
        f"{all_.value:.2f}× [{all_.low:.2f}, {all_.high:.2f}]; a step of {WIDE} paths "
        f"{eight:.2f}×, of the summary over them {summary:.2f}×, its first {first:.2f}×; "
        f"the summary adds {np.median(shares):.0%} to the seconds of paths of {length} tokens; "
        f"{len(shares)} problems",
        all_.high <= LATER,
        figure=all_,
        needed=LATER,
    )


SOLVED = {
    "summary": lambda log: scores_of(log)["right"] > 0,
    "majority vote": lambda log: scores_of(log)["voted"] > 0,
    "any path right (bound)": lambda log: scores_of(log)["covered"] > 0,
}


def widths(title: str, total: int) -> Sweep:
    """The same problems at every width, the tokens of each path or of all together held."""
    some: Changes = {"total": total, "problems": 32, "together": 32, "pages": 4096}
    plot = Plot(title, "paths", "problems solved (share)", log_x=True)
    return Sweep(plot, ("width", (1, 2, 4, 8)), SOLVED, changes=some)


STUDY = Study(
    slug="parathinker",
    driver=run,
    config=PathsConfig(),
    views=("threads", "page_map", "levels"),
    about=(
        "A small model looks for Countdown's answers on several paths at once. A root reads the "
        "problem and forks: each path begins with its own control token, sees the problem's pages "
        "and its own, and adds a learnt embedding of its number to every key and value, because "
        "all paths stand at the same positions. A path that has written its first step searches on "
        "from there. When the first path has found a solution the others stop, and the root goes "
        "on as the summary: it reads the pages of all paths where they lie and says the answer."
    ),
    tries=(
        ("One path alone", ALONE),
        ("Wait until every path has ended", {"finish": "last"}),
        ("A summary that sees one path alone", BLIND),
    ),
    presets={"alone": ALONE, "again": AGAIN},
    sweeps=(
        widths("Equal budget for each path", 0),
        widths("Equal budget for all paths", TOTAL),
    ),
    claims=(
        Claim(
            id="union",
            sentence="The summary over the paths' pages is a forward with the block mask.",
            paper="two-phase attention: paths apart, then a summary over all (section 4)",
            grade="exact",
            check=union,
            reported=Reported(0.0, "equal", tolerance=CLOSE),
            finding="reproduced",
            broken=(Break({"embeddings": False}, True, "keys and values lack the path's number"),),
        ),
        Claim(
            id="once",
            sentence="Nothing is computed twice: the summary reads what the paths have cached.",
            paper="the paths' KV cache is reused, without another prefill (section 4)",
            grade="exact",
            check=once,
            reported=Reported(0.0, "equal"),
            finding="reproduced",
            broken=(Break(AGAIN, True, "the summary computes the paths again"),),
        ),
        Claim(
            id="wider",
            sentence="Eight paths are 12.3 points more accurate than one that thinks in sequence.",
            paper="12.3% (1.5B) and 7.5% (7B) over sequential models with 8 paths (abstract); 8 "
            "paths of 16k tokens 63.2%, one of 32k 50.9% (model card of ParaThinker-1.5B)",
            grade="measured",
            taught=PATHS,
            check=wider,
            reported=Reported(0.123, none=0.0, unit="%"),
            finding="reproduced",
            why=f"eight paths of {EACH} tokens beside one of {DEPTH}: a quarter of all of theirs, "
            "as in the paper. With as many tokens in all, the next claim, it is the other way "
            "round",
            broken=(Break(BLIND, True, "the summary reads one path of the eight"),),
        ),
        Claim(
            id="equal-total",
            sentence="With as many tokens in all, width is more effective than depth.",
            paper="width is a more effective and efficient way than depth (abstract)",
            grade="measured",
            taught=PATHS,
            check=equal_total,
            reported=Reported(0.0, none=0.0, unit="%"),
            finding="contrary",
            quick="undecided",
            fails=("small", "full"),
            why="it hangs on how many: of 224 tokens one path with all of them solves 45.7% of "
            "1,000 problems, four paths 41.0%, at half the wait; of 320 they are level; of 448 the "
            "four solve 6.6 points more [3.5, 9.8] (map). With so many one path cannot do more: it "
            "draws 220 in the mean and ends, or comes to the model's 384 positions (100 problems)",
            broken=(Break(BLIND, True, "the summary reads one path of the four"),),
        ),
        Claim(
            id="said",
            sentence="Paths are synthesized into a superior answer, 4.3 points above a vote's.",
            paper="paths are synthesized into a superior final answer (abstract); 4.3 points "
            "(1.5B) and 2.0 (7B) above majority voting (second hand: a summary of the paper)",
            grade="measured",
            taught=PATHS,
            check=said,
            reported=Reported(0.043, none=0.0, unit="%"),
            finding="contrary",
            fails=("small", "full"),
            why="held against a vote of the same paths: a path states an answer only where it has "
            "found one, so a vote is nearly always right, and the summary loses some of it",
            broken=(Break(BLIND, True, "the summary reads one path of the eight"),),
        ),
        Claim(
            id="overhead",
            sentence="Eight paths and their summary add 7.1% to the latency of one path.",
            paper="7.1% latency overhead on average; 16 paths take less than 2× one (README)",
            grade="measured",
            check=overhead,
            reported=Reported(LATER, "less", unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="1.86× [1.78, 1.95] on an Intel Xeon, 1.90× [1.81, 1.99] on an AMD EPYC: on two "
            "cores a pass over eight rows costs more than over one, and the summary's tokens are "
            "an eighth of so short a path; no GPU, where the paper's rows cost little, has run it",
            broken=(Break(AGAIN, True, "the summary computes the paths again"),),
            timed=True,
        ),
    ),
    regimes=(
        Regime(
            claim="equal-total",
            knob="total",
            values=(56, 112, 168, 224, 320, 448),
            coarse=(112, 224, 448),
            x="tokens of all paths together; one path has room for 384 with the question",
            noun="tokens",
            y="solved by four paths, less what one solves (share)",
            default=TOTAL,
            judged=width_wins,
        ),
        Regime(
            claim="wider",
            knob="tokens of one path",
            values=(48, 96, 144, 192, 256, 320),
            coarse=(96, 192, 320),
            x=f"tokens of the one path; each of {WIDE} has {EACH}, all of them {WIDE * EACH}",
            y=f"solved by {WIDE} paths, less what one solves (share)",
            paper=DEPTH,
            paper_is="the paper, where one path has twice the tokens of each of eight,",
            default=DEPTH,
            judged=beside_depth,
            noun="tokens",
        ),
        Regime(
            claim="said",
            knob="paths",
            values=(2, 4, WIDE),
            coarse=(2, WIDE),
            x=f"paths, of {EACH} tokens each",
            y="solved by the summary, less what a vote solves (share)",
            paper=WIDE,
            default=WIDE,
            judged=said_by,
            noun="paths",
        ),
        Regime(
            claim="overhead",
            knob="tokens of a path",
            values=(20, SHORT, 80, 160, 320),
            coarse=(20, SHORT),
            x=f"tokens of each of {WIDE} paths",
            y="latency over that of one path (×)",
            default=SHORT,
            judged=of_length,
            log_x=True,
            noun="tokens",
        ),
    ),
    limits=(
        "One model of 0.7 M parameters on small Countdown problems, taught by 700 steps of paths "
        "after it had imitated single searches; the paper fine-tunes 1.5B and 7B models on "
        "mathematics. That width beats depth at equal tokens holds of 448 tokens in all, more "
        "than one path draws, not of 224: one path that may draw 224 goes on to other first steps "
        "by itself, so it is not caught in a tunnel, and solves more than four paths of 56 (45.7% "
        "against 41.0% of 1,000 problems); eight of 28 cannot finish a single try. What width "
        "buys here is a shorter wait. Nor does the summary beat a vote: a path states an answer "
        "only where it has found one, so a vote among those who do is nearly always right, and "
        "the summary loses some of what it reads: it is right in 61.2% of 1,000 problems, a vote "
        "in 70.8%. It has learnt to read fans that the first finisher ended; where all paths go "
        "on to their ends (finish: last) several have answers, it mixes them and solves less than "
        "half as much. Keys and values have an embedding each, the summary and the prompt none. "
        "They are added to the projected keys before rotation, as in training: a cached key then "
        "carries its path, and turning queries to where a block stands stays exact. Summaries "
        "have 14 tokens and paths fewer than a hundred, so what a summary adds weighs more than "
        "in the paper's thousands of tokens."
    ),
)
