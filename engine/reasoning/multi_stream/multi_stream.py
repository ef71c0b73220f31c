"""The driver of several streams: inputs go on while outputs are written, side by side or in turns.

In come a config and problems; out come tokens of every stream, reactions and answers.
"""

from collections.abc import Sequence

from engine.core.events import Mark
from engine.core.run import Live
from engine.reasoning.multi_stream.config import StreamsConfig
from engine.reasoning.multi_stream.side_by_side import SideBySide
from engine.reasoning.multi_stream.turn_taking import TurnTaking
from engine.reasoning.streams.loop import Begin, drive, keep
from engine.tasks.running_sum import QUESTION

Form = SideBySide | TurnTaking
FORMS: dict[str, Begin[Form]] = {"side by side": SideBySide, "in turns": TurnTaking}


def run(config: StreamsConfig, live: Live) -> None:
    """Let all streams go on until every question is answered."""
    sessions = drive(config, live, FORMS[config.form], asked_s)
    now = sessions[0].caches.clock.now()
    for place, session in enumerate(sessions):
        said = session.answers()
        lane, text = session.streams[-1].name, " ".join(answer for _, answer in said)
        right = sum(wanted == answer for wanted, answer in said)
        live.emit(Mark(now, lane, "answer", text or "none"))
        live.emit(Mark(now, lane, "verdict", f"{right} of {len(said)} right"))
        if config.keep_logits:
            keep(live, now, place, session)


def asked_s(sessions: Sequence[Form]) -> dict[str, list[list[float]]]:
    """When the questions of each problem come, for the log's header."""
    return {
        "asked_s": [
            [row * s.config.pace for row, one in enumerate(s.problem.rows["ask"])
             if one == QUESTION]
            for s in sessions
        ]
    }  # fmt: skip
