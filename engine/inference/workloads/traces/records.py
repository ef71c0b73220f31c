"""Traced: one record of a request trace, read from each of the public layouts."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.core.limits import check_unpacked

BLOCK = 512  # prompt tokens of one Mooncake hash id
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
WHEN, ASKED, ANSWERED = BURSTGPT = "Timestamp", "Request tokens", "Response tokens"  # its columns
MOST_REQUESTS = 1_000_000  # of one result of vLLM's benchmark
MOST_TOKENS = 10_000_000  # of one prompt or answer
ASKING = ("human", "user")
ANSWERING = ("gpt", "assistant", "chatgpt", "bing", "bard")


@dataclass(frozen=True, slots=True)
class Traced:
    """One request of a trace. Lengths in tokens; 0 where the trace has text instead."""

    arrival: float  # seconds from the first
    prompt: int = 0
    answer: int = 0
    blocks: tuple[int, ...] = ()  # Mooncake: equal ids are equal blocks after equal prefixes
    text: str = ""  # ShareGPT: everything before the answer
    reply: str = ""  # ShareGPT: the answer
    conversation: int = -1  # ShareGPT: turns of one conversation begin alike


class Fault(Exception):
    """What is wrong with one line; the reader adds file and line."""


def azure(line: str, number: int) -> list[Traced]:
    """A CSV line: when, tokens asked, tokens answered."""
    fields = line.strip().split(",")
    if len(fields) != 3:
        raise Fault(f"{len(fields)} fields where {HEADER} has 3")
    try:
        moment = datetime.fromisoformat(fields[0].strip())
    except ValueError:
        raise Fault(f"TIMESTAMP {fields[0][:40]!r} is no date and time") from None
    # Naive times count as UTC: only differences matter, and local clocks jump.
    seconds = (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()
    if (offset := moment.utcoffset()) is not None:
        seconds -= offset.total_seconds()
    prompt = _whole(fields[1].strip(), "ContextTokens", 1)
    return [Traced(seconds, prompt, _whole(fields[2].strip(), "GeneratedTokens", 0))]


def burstgpt(columns: Mapping[str, int]) -> Callable[[str, int], list[Traced]]:
    """What reads a CSV line whose fields stand at `columns`, a number for each of `BURSTGPT`."""
    least = max(columns.values()) + 1

    def read(line: str, number: int) -> list[Traced]:
        fields = [field.strip() for field in line.split(",")]
        if len(fields) < least:
            raise Fault(f"{len(fields)} fields where the header's have {least}")
        try:
            moment = float(fields[columns[WHEN]])
        except ValueError:
            moment = -1.0
        if not 0 <= moment < 1e12:
            raise Fault(f"{WHEN} must be seconds, 0 or more, not {fields[columns[WHEN]][:40]!r}")
        prompt = _whole(fields[columns[ASKED]], ASKED, 1)
        return [Traced(moment, prompt, _whole(fields[columns[ANSWERED]], ANSWERED, 0))]

    return read


def benchmarked(line: str, number: int) -> list[Traced]:
    """A result of vLLM's serving benchmark: lengths of all requests, and when they were sent where
    it says so."""
    record = _json(line)
    asked, answered = record.get("input_lens"), record.get("output_lens")
    times = record.get("start_times")
    if not isinstance(asked, list) or not isinstance(answered, list):
        raise Fault("needs input_lens and output_lens, lists; save the result with --save-detailed")
    if times is None:
        times = [0.0] * len(asked)
    if not isinstance(times, list) or not len(asked) == len(answered) == len(times):
        raise Fault("input_lens, output_lens and start_times must be equally long lists")
    if len(asked) > MOST_REQUESTS:
        raise Fault(f"{len(asked)} requests, at most {MOST_REQUESTS}")
    found = []
    for place, (moment, prompt, answer) in enumerate(zip(times, asked, answered, strict=True)):
        plain = isinstance(moment, (int, float)) and not isinstance(moment, bool)
        if not plain or not 0 <= moment < 1e12:
            raise Fault(f"start_times[{place}] must be seconds, 0 or more")
        prompt = _whole(prompt, f"input_lens[{place}]", 1)
        answer = _whole(answer, f"output_lens[{place}]", 0)
        found.append(Traced(float(moment), prompt, answer))
    return found


def mooncake(line: str, number: int) -> list[Traced]:
    """A JSON line: when, lengths, and an id for each block of the prompt."""
    record = _json(line)
    moment: Any = record.get("timestamp")
    plain = isinstance(moment, (int, float)) and not isinstance(moment, bool)
    if not plain or not 0 <= moment < 1e15:
        raise Fault("timestamp must be milliseconds, 0 or more")
    prompt = _whole(record.get("input_length"), "input_length", 1)
    answer = _whole(record.get("output_length"), "output_length", 0)
    blocks = record.get("hash_ids")
    if not isinstance(blocks, list) or any(
        type(b) is not int or not 0 <= b < 2**63 for b in blocks
    ):
        raise Fault("hash_ids must be a list of whole numbers, 0 or more")
    if len(blocks) != -(-prompt // BLOCK):
        raise Fault(
            f"{len(blocks)} hash_ids where {prompt} tokens have {-(-prompt // BLOCK)} blocks"
        )
    return [Traced(moment / 1000.0, prompt, answer, tuple(blocks))]


def conversation(record: Any, number: int) -> list[Traced]:
    """One request for each answered question, its prompt being all turns before the answer.

    Raises BadInput where the prompts together are too long for what the turns say.
    """
    record = _json(record) if isinstance(record, str) else record
    fields = record if isinstance(record, dict) else {}
    turns = fields.get("conversations", fields.get("messages"))
    if not isinstance(turns, list):
        raise Fault('needs "conversations" or "messages", a list of turns')
    spoken = [_turn(turn) for turn in turns]
    own = repeated = 0
    for who, said in spoken:
        repeated += own if who in ANSWERING else 0
        own += len(who) + len(said) + 3
    check_unpacked(f"conversation {number}", repeated, own)
    found, before, asked = [], "", False
    for who, said in spoken:
        if who in ANSWERING and asked:
            found.append(Traced(0.0, text=before, reply=said, conversation=number))
        asked = who in ASKING
        before += f"{who}: {said}\n"
    return found


def _turn(turn: Any) -> tuple[str, str]:
    if not isinstance(turn, dict):
        raise Fault("a turn must be an object")
    who, said = turn.get("from", turn.get("role")), turn.get("value", turn.get("content"))
    if not isinstance(who, str) or not isinstance(said, str):
        raise Fault('a turn needs the texts "from" and "value", or "role" and "content"')
    return who.lower(), said


def _json(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise Fault(f"not JSON ({fault})") from None
    if not isinstance(record, dict):
        raise Fault("not a JSON object")
    return record


def _whole(value: Any, name: str, low: int) -> int:
    """A whole number of tokens from JSON or from text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if type(value) is not int or not low <= value <= MOST_TOKENS:
        shown = str(value)[:40]
        raise Fault(f"{name} must be a whole number from {low} to {MOST_TOKENS}, not {shown!r}")
    return value
