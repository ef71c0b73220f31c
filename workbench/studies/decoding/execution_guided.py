"""EG-CFG: code line by line, each line guided by what candidates for it do when they are run."""

from dataclasses import replace

from engine.reasoning.execution_guided.config import ExecutionGuidedConfig
from engine.reasoning.execution_guided.execution_guided import run
from workbench.studies.decoding._execution_guided import (
    ALONE,
    NONE,
    PLAIN,
    above_sampling,
    above_unguided,
    at,
    beyond_alone,
    by_tokens,
    one_a_line,
    refused,
    same_as_plain,
    unguided,
)
from workbench.study import Break, Claim, Regime, Reported, Study, Taught

PROGRAMS = Taught({"model": "list-programs-170k"})
SWAPPED = Break(
    {"fault": "swapped"},
    mechanism=True,
    why="the distribution with the signal is taken for the one without: lines are led away from it",
)
STALE = Break({"fault": "stale"}, True, "a line has the signal of the line before")
# Of 30 problems ours solves three or none, less than the rival's own scatter.
SWAPPED_OF_MANY = replace(SWAPPED, small=False)
SOLVED = "solved, less those of plain decoding (share)"

STUDY = Study(
    slug="execution-guided",
    driver=run,
    config=ExecutionGuidedConfig(),
    views=("threads", "token_river", "levels", "page_map"),
    about=(
        "A model writes a short program that turns one list of digits into another, asked for by "
        "two examples. Before each line a few continuations fork from the code so far over one "
        "cache and are run on the examples, in a process that can do nothing else. What they come "
        "to, line by line, is put into the prompt, and the line is drawn from two distributions of "
        "the model, with that signal and without it, led from the second to the first and beyond "
        "as far as γ says. The signal stays as it is for the line and is made anew for the next "
        "one. Each candidate is a lane: read and kept, or read and not, with what it came to."
    ),
    tries=(
        ("Plain decoding, no signal", PLAIN),
        ("The signal in the prompt alone (γ = 1)", ALONE),
        ("A line of your own that may not run", {"also": "import os"}),
    ),
    presets={"plain": PLAIN, "unguided": NONE, "alone": ALONE},
    claims=(
        Claim(
            id="above-unguided",
            sentence="Guided by what candidates do when run, a model solves 33.8 points more than "
            "by plain decoding.",
            paper="MBPP, DeepSeek-Coder 1.3B: 49.4% to 83.2%; DeepSeek-V3: 82.8% to 96.6% (the "
            "authors' repository, benchmark results), the best of a grid of settings each",
            grade="measured",
            taught=PROGRAMS,
            check=above_unguided,
            reported=Reported(0.832 - 0.494, none=0.0, unit="%"),
            finding="weaker",
            quick="undecided",
            fails=("small",),
            why="the paper states the best of a grid of settings for each model. Of its grid of γ "
            "the one that solves most of 300 other problems is taken here, which is 1: 15.7% "
            "against 9.0% of 300 problems. At γ = 3, the largest, where this study stands, no "
            "difference can be told (9.3%; the map)",
            broken=(STALE,),
        ),
        Claim(
            id="above-sampling",
            sentence="It solves more than as much computing spent on whole programs, of which the "
            "first is taken that passes the same examples.",
            paper="not held against: the paper's rivals are other ways of prompting",
            grade="measured",
            taught=PROGRAMS,
            check=above_sampling,
            reported=Reported(0.0, none=0.0, unit="%"),
            finding="contrary",
            fails=("small", "full"),
            why="this project's own condition: 9.3% against 48.9% of 300 problems. For as many "
            "positions the rival draws all of its 64 programs, and where examples tell a right "
            "program from a wrong one, drawing many finds it. At γ = 1, of 500 other problems, it "
            "is 18.2% against 41.2%; for as many generated tokens, prompts not counted, 18.2% "
            "against 18.5%",
            broken=(SWAPPED_OF_MANY,),
        ),
        Claim(
            id="beyond-alone",
            sentence="Guided beyond the signal (γ = 3) it solves more than with the signal in the "
            "prompt alone (γ = 1).",
            paper="γ of 0, 0.5, 1 and 3 are tried for each task (configuration in the authors' "
            "repository); what each solves alone is not in the abstract",
            grade="measured",
            taught=PROGRAMS,
            check=beyond_alone,
            reported=Reported(0.0, none=0.0, unit="%"),
            finding="contrary",
            quick="undecided",
            fails=("small", "full"),
            why="9.3% against 15.7% of 300 problems, 6.3 points less [-10.0, -3.0]: led beyond "
            "what the model believes with the signal, lines stop being programs",
            broken=(SWAPPED,),
        ),
        Claim(
            id="one-a-line",
            sentence="A signal is the same for all tokens of a line and made anew at its end.",
            paper="consistent signals across tokens within the same line, refreshed at line "
            "boundaries (abstract)",
            grade="exact",
            check=one_a_line,
            reported=Reported(0.0, "equal", unit="signals"),
            finding="reproduced",
            broken=(
                STALE,
                Break({"fault": "unread"}, True, "what candidates came to is not told"),
                Break({"refresh": "token"}, True, "a signal is made anew within a line"),
            ),
        ),
        Claim(
            id="zero-is-plain",
            sentence="γ = 0 decodes as without any signal, γ = 1 as with it in the prompt, token "
            "for token.",
            paper="P (P_c / P)^γ: γ of 0 is the prior, of 1 the conditional (the authors' "
            "repository, apply_guidance)",
            grade="exact",
            check=same_as_plain,
            reported=Reported(0.0, "equal", unit="programs that differ"),
            finding="reproduced",
            broken=(SWAPPED,),
        ),
        Claim(
            id="refused",
            sentence="A candidate that does more than a program may is refused, and the signal "
            "says so.",
            paper="candidates are run against test cases (abstract); what they may do is not said",
            grade="exact",
            check=refused,
            reported=Reported(0.0, "equal", unit="attacks"),
            finding="reproduced",
            why="this project's own condition; that a process whose interpreter has fallen has no "
            "way out either is tested with code that runs in it as it likes",
            broken=(Break({"fault": "forgiving"}, True, "what stops a program is not told"),),
        ),
    ),
    regimes=(
        Regime(
            claim="above-unguided",
            knob="guidance",
            values=(0.0, 0.5, 1.0, 2.0, 3.0, 5.0),
            coarse=(0.0, 1.0, 3.0),
            x="guidance γ: 0 without the signal, 1 with it, beyond: led by what it adds",
            y=SOLVED,
            less="each guidance by itself",
            paper=3.0,
            paper_is="the largest of the paper's grid",
            default=3.0,
            judged=at("guidance", unguided),
        ),
        Regime(
            claim="beyond-alone",
            knob="guidance",
            values=(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0),
            coarse=(0.5, 3.0),
            x="guidance γ: 0 without the signal, 1 with it, beyond: led by what it adds",
            y="solved, less those with the signal in the prompt alone (share)",
            paper=3.0,
            paper_is="the largest of the paper's grid",
            default=3.0,
            judged=at("guidance", beyond_alone),
        ),
        Regime(
            claim="above-unguided",
            knob="candidates",
            values=(0, 1, 2, 3, 4),
            coarse=(0, 3),
            x="candidates before each line, at γ = 1; 0: the signal has the values so far alone",
            y=SOLVED,
            paper=3.0,
            default=3.0,
            changes=ALONE,
            judged=at("candidates", unguided),
            noun="candidates",
        ),
        Regime(
            claim="above-sampling",
            knob="candidates",
            values=(0, 1, 2, 3, 4),
            coarse=(0, 3),
            x="candidates before each line; the rival draws whole programs for as much",
            y="solved, less those of best of n (share)",
            paper=3.0,
            default=3.0,
            judged=at("candidates", above_sampling),
            noun="candidates",
        ),
        Regime(
            claim="above-sampling",
            knob="candidates, by tokens",
            values=(0, 1, 2, 3, 4),
            coarse=(0, 3),
            x="candidates before each line; the rival generates as many tokens",
            y="solved, less those of best of n (share)",
            less="as many generated tokens",
            paper=3.0,
            default=3.0,
            judged=at("candidates", by_tokens),
            noun="candidates",
        ),
    ),
    limits=(
        "One model of 168,000 parameters, trained once here on programs of at most three lines in "
        "a language of ten forms; the paper's have 1.3 to 671 billion and know Python. Only its "
        "abstract and the authors' repository were read. The paper's settings (temperature, "
        "candidates, horizon, γ) are the best of a grid for each model; here one setting was "
        "written down before a model was scored, and kept, but for γ beside plain decoding. Of "
        "the trainings before this one, one was scored and knew nothing (1 to 2 of 100): problems "
        "were told apart anew, steps made six times as many, and the first model of that was "
        "taken. Each line reads its prompt anew with the signal, so that a rival of equal "
        "computing draws many programs."
    ),
)
