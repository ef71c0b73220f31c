"""Examples of programs written line by line, with execution signals in their prompts and without.

Of the same problems half are learnt as they are, all lines; half up to a line that follows a signal
of drawn candidates, of which some begin as the right program goes on. So the model knows both
distributions that guidance combines; what candidates come to is learnt as well.
"""

from random import Random

from tokenizers import Tokenizer

from engine.reasoning.execution_guided.signal import MARKS, Tried, signal
from engine.tasks.list_programs import Digits, Line, ListProgram, walk
from engine.tasks.sandbox.interpreter import Outcome
from engine.training.data.packing import Example, spoken
from engine.training.data.tokenizer import BOS, EOS

CANDIDATES = (0, 1, 2, 3, 3, 4)  # of a signal; one of them is drawn
HORIZON = 2  # lines of a candidate
TRACES = 0.1  # weight of a trace's token: to foretell it is to know what lines do
RIGHT = 0.3  # chance that a candidate begins as the program goes on


def plain(tokenizer: Tokenizer, problem: ListProgram) -> Example:
    """Read the examples, learn all lines and the end."""
    read = tokenizer.encode(BOS + problem.prompt).ids
    said = tokenizer.encode(problem.answer + EOS).ids
    return spoken([*read, *said], [False] * len(read) + [True] * len(said))


def signalled(tokenizer: Tokenizer, problem: ListProgram, chance: Random) -> Example:
    """Read the examples, a signal and the lines before one; learn that one, or the end."""
    before = chance.randrange(len(problem.lines) + 1)
    written, rest = problem.lines[:before], problem.lines[before:]
    tried = [candidate(problem, written, rest, chance) for _ in range(chance.choice(CANDIDATES))]
    now = [Outcome(walk(written, start), "") for start, _ in problem.shown]
    wanted = [end for _, end in problem.shown]
    pieces = [(BOS + problem.prompt, 0.0)]
    for line in signal(now, tried, before, wanted).splitlines():
        said = line.rsplit(" ", len(problem.shown))[0] + " "
        weight = 0.0 if said == MARKS[0] else TRACES
        pieces += (said, 0.0), (line.removeprefix(said) + "\n", weight)
    pieces += (text(written), 0.0), (text(rest[:1]) or EOS, 1.0)
    tokens: list[int] = []
    learnt: list[float] = []
    for piece, weight in pieces:
        ids = tokenizer.encode(piece).ids
        tokens += ids
        learnt += [weight] * len(ids)
    return spoken(tokens, learnt)


def candidate(
    problem: ListProgram, written: tuple[Line, ...], rest: tuple[Line, ...], chance: Random
) -> Tried:
    """One or more lines that somebody may have gone on with, and what they come to."""
    count = chance.randint(1, HORIZON)
    lines = [Line.draw(chance) for _ in range(count)]
    if chance.random() < RIGHT:
        right = chance.randint(1, count)
        lines = [*rest[:right], *lines][:count]
    outcomes = [outcome((*written, *lines), start) for start, _ in problem.shown]
    return Tried(tuple(map(str, lines)), tuple(outcomes))


def outcome(lines: tuple[Line, ...], start: Digits) -> Outcome:
    """What the sandbox says of the same lines."""
    values = [start]
    for line in lines:
        try:
            values.append(line.of(values[-1]))
        except IndexError:
            return Outcome(values[1:], "IndexError")
    return Outcome(values[1:], "")


def text(lines: tuple[Line, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)
