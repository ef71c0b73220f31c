"""Several streams of roles: inputs go on while outputs are written, side by side or in turns.

In come a config and problems; out come tokens of every stream, reactions and answers (arXiv
2605.12460). Shape letters: S streams.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from engine.core.events import Mark, Token
from engine.core.run import Live
from engine.reasoning.multi_stream.config import StreamsConfig
from engine.reasoning.streams.caches import Feed
from engine.reasoning.streams.loop import Begin, drive
from engine.reasoning.streams.script import who_sees
from engine.reasoning.streams.session import Session
from engine.tasks.running_sum import LAG, QUESTION, SILENCE, STREAMS, SumProblem, sums

INPUTS = ("read", "ask")
DIGITS = 2  # of a sum


@dataclass(eq=False)
class SideBySide(Session[StreamsConfig, SumProblem]):
    """A stream for each role: in each row of time every stream writes one token, in one pass.

    Input streams write what has arrived, output streams what the model said after the row before; a
    token sees the earlier rows of the streams it may see. `forced`: output streams say what the
    problem wants, whatever the model says.
    """

    forced: bool = False

    def __post_init__(self) -> None:
        self.sees_SS = who_sees(self.config.sees, STREAMS)
        self.streams = [self.caches.open(f"{stream}{self.name}") for stream in STREAMS]
        self.rows = len(self.problem.rows["read"])
        self.said = dict.fromkeys(STREAMS, "")
        self.next = dict.fromkeys(STREAMS, SILENCE)
        self.logits: list[list[np.ndarray]] = []  # of every row, by stream

    @property
    def over(self) -> bool:
        """Whether all rows are written."""
        return self.streams[-1].length >= self.rows

    def due(self) -> float:
        """When the next row of input arrives (s)."""
        return self.streams[0].length * self.config.pace

    def feeds(self, now: float) -> list[Feed]:
        """The next row, once its input is there."""
        if now < self.due() - 1e-9:
            return []
        row, found = self.streams[0].length, []
        seen = row + int(self.config.same_row)
        for name, stream, sees_S in zip(STREAMS, self.streams, self.sees_SS, strict=True):
            given = name in INPUTS or self.forced
            letter = self.problem.rows[name][row] if given else self.next[name]
            self.said[name] += letter
            others = [(o, seen) for o in compress(self.streams, sees_S) if o is not stream]
            found.append(Feed(stream, self.words.encode(name, letter), others))
        return found

    def take(self, feed: Feed, logits_V: np.ndarray, now: float) -> None:
        """`feed` has been written, and these are the logits after it."""
        number = self.streams.index(feed.stream)
        name, emit = STREAMS[number], self.caches.emit
        if self.config.keep_logits:
            if number == 0:
                self.logits.append([])
            self.logits[-1].append(logits_V)
        if name in INPUTS:
            letter = self.said[name][-1]
            emit(Token(now, feed.stream.name, letter))
            if letter == QUESTION:
                emit(Mark(now, feed.stream.name, "ask", "what is the sum by now?"))
            return
        token, logprob = self.words.choose(name, logits_V)
        before, self.next[name] = self.next[name], self.words.text([token])
        if not self.over:
            emit(Token(now, feed.stream.name, self.next[name], logprob))
        if name == "say" and self.next[name] != SILENCE and before == SILENCE:
            emit(Mark(now, feed.stream.name, "react", "begins to answer"))

    def kept(self) -> dict[str, np.ndarray]:
        """What every stream held, row by row, and the logits after each token."""
        rows = [self.words.encode(name, text) for name, text in self.said.items()]
        return {"tokens": np.array(rows).T, "logits": np.array(self.logits)}

    def answers(self) -> list[tuple[str, str]]:
        """(wanted, said) of each question: the two letters `LAG` rows after it."""
        wanted, said = self.problem.rows["say"], self.said["say"]
        begun = [row + LAG for row in self.problem.questions]
        return [(wanted[at : at + 2], said[at : at + 2]) for at in begun]


@dataclass(eq=False)
class TurnTaking(Session[StreamsConfig, SumProblem]):
    """The same roles in one stream: read some, think of all of it, answer.

    What arrives while the model writes has to wait for its turn to end, as in a chat.
    """

    def __post_init__(self) -> None:
        rows = self.problem.rows
        read = [(row, "read", rows["read"][row - 1 : row + 1]) for row, _ in sums(rows["read"])]
        read += [(row, "ask", QUESTION) for row in self.problem.questions]
        # (row, stream, letters) in the order of arrival: a number before a question of its row.
        self.waiting = deque(sorted(read, key=lambda event: (event[0], event[1] == "ask")))
        self.stream = self.caches.open(f"all{self.name}")
        self.streams = [self.stream]
        self.todo: list[str] = []  # streams of the tokens still to be said in this turn
        self.feed: list[int] = []
        self.given: list[tuple[str, str]] = []  # what the next pass reads
        self.said: list[tuple[str, str]] = []

    @property
    def over(self) -> bool:
        """Whether the last question is answered, or the last number thought of."""
        return not self.todo and not any(name == "ask" for _, name, _ in self.waiting)

    def due(self) -> float:
        """When the next thing it waits for arrives (s)."""
        turn = [row for row, name, _ in self.waiting if name == "read"][self.config.turn - 1 :]
        ask = [row for row, name, _ in self.waiting if name == "ask"]
        return min([*turn, *ask]) * self.config.pace

    def feeds(self, now: float) -> list[Feed]:
        """The token said last, or a turn's worth of what has arrived."""
        if not self.todo:
            if now < self.due() - 1e-9:
                return []
            self._read(now)
        return [Feed(self.stream, self.feed, ())]

    def _read(self, now: float) -> None:
        """Take what has arrived, up to a question or a full turn."""
        # What was said last, if anything, is still to be written before them.
        numbers, asked = 0, False
        while self.waiting and numbers < self.config.turn and not asked:
            row, name, letters = self.waiting[0]
            if now < row * self.config.pace - 1e-9:
                break
            self.waiting.popleft()
            self.given += [(name, letter) for letter in letters]
            self.feed += self.words.encode(name, letters)
            asked = name == "ask"
            numbers += not asked
        self.todo += ["think"] * (DIGITS * numbers) + ["say"] * (DIGITS * asked)

    def take(self, feed: Feed, logits_V: np.ndarray, now: float) -> None:
        """`feed` has been written, and these are the logits after it."""
        emit = self.caches.emit
        for name, letter in self.given:
            emit(Token(now, self.stream.name, letter))
            if name == "ask":
                emit(Mark(now, self.stream.name, "ask", "what is the sum by now?"))
        self.said += self.given
        self.given = []
        name = self.todo.pop(0)
        token, logprob = self.words.choose(name, logits_V)
        letter = self.words.text([token])
        emit(Token(now, self.stream.name, letter, logprob))
        if name == "say" and (not self.said or self.said[-1][0] != "say"):
            emit(Mark(now, self.stream.name, "react", "begins to answer"))
        self.said.append((name, letter))
        self.feed = [token]

    def answers(self) -> list[tuple[str, str]]:
        """(wanted, said) of each question."""
        digits = "".join(letter for name, letter in self.said if name == "say")
        said = [digits[at : at + DIGITS] for at in range(0, len(digits), DIGITS)]
        return list(zip(map(self.problem.total, self.problem.questions), said, strict=False))


Form = SideBySide | TurnTaking
FORMS: dict[str, Begin[Form]] = {"side by side": SideBySide, "in turns": TurnTaking}


def run(config: StreamsConfig, live: Live) -> None:
    """Let all streams go on until every question is answered."""
    sessions = drive(config, live, FORMS[config.form], asked_s)
    now = sessions[0].caches.clock.now()
    for session in sessions:
        said = session.answers()
        lane, text = session.streams[-1].name, " ".join(answer for _, answer in said)
        right = sum(wanted == answer for wanted, answer in said)
        live.emit(Mark(now, lane, "answer", text or "none"))
        live.emit(Mark(now, lane, "verdict", f"{right} of {len(said)} right"))


def asked_s(sessions: Sequence[Form]) -> dict[str, list[list[float]]]:
    """When the questions of each problem come, for the log's header."""
    return {"asked_s": [[row * s.config.pace for row in s.problem.questions] for s in sessions]}
