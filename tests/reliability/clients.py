"""Streaming clients of a toy model: how each one's answer came, whoever leaves or reads slowly.

After the k-th letter the toy says the next, so a token lost, doubled or out of order shows.
`python -m tests.reliability.clients PORT` takes lines of JSON (what `drawn` is given), each a round
of clients that all ask at once, and prints how many came to which end.
"""

import asyncio
import json
import random
import string
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LEAVING, SLOW = 0.30, 0.05
SLICE = 1  # bytes that a slow one takes in a second, SLICES times; then it reads as others do
SLICES = 5
WAITED = 600.0


@dataclass
class Client:
    """What one does: leaves after so many bytes, or reads slowly, or neither."""

    number: int
    tokens: int
    leaves: int = 0
    slow: bool = False

    @property
    def letter(self) -> str:
        return string.ascii_lowercase[self.number % 26]

    def body(self) -> bytes:
        fields = {"model": "toy", "prompt": self.letter, "max_tokens": self.tokens,
                  "temperature": 0, "stream": True}  # fmt: skip
        return json.dumps(fields).encode()

    def right(self) -> str:
        first = string.ascii_lowercase.index(self.letter) + 1
        return "".join(string.ascii_lowercase[(first + n) % 26] for n in range(self.tokens))


def drawn(count: int, seed: int, leaving: float = LEAVING, slow: float = SLOW) -> list[Client]:
    """So many clients, of whom these shares leave and are slow."""
    draw = random.Random(seed)
    made = [Client(number, draw.randint(20, 120)) for number in range(count)]
    order = draw.sample(made, count)
    leave = round(leaving * count)
    for one in order[:leave]:
        one.leaves = draw.randint(1, 4000)
    for one in order[leave : leave + round(slow * count)]:
        one.slow = True
    return made


async def asked(one: Client, port: int) -> str:
    """What came of one client: right, left, or what was wrong."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as fault:
        return f"not connected: {fault}"
    body = one.body()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        if one.leaves:
            taken = 0
            while taken < one.leaves and (part := await reader.read(one.leaves - taken)):
                taken += len(part)
            return "left"
        begun = b""
        for _ in range(SLICES if one.slow else 0):
            begun += await reader.read(SLICE)
            await asyncio.sleep(1.0)
        return judged(one, begun + await reader.read())
    except OSError as fault:
        return f"broken: {fault}"
    finally:
        writer.close()


def judged(one: Client, answer: bytes) -> str:
    """Whether every token came, once and in order, and then the end."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    status = head.split(b" ")[1:2]
    if status != [b"200"]:
        return f"status {status}"
    lines = [line for line in rest.split(b"\n") if line.startswith(b"data: ")]
    if not lines or lines[-1].strip() != b"data: [DONE]":
        return "no end"
    events = [json.loads(line[6:]) for line in lines[:-1]]
    text = "".join(choice["text"] for event in events for choice in event["choices"])
    return "right" if text == one.right() else f"wrong text: {text[:40]}"


async def all_asked(clients: list[Client], port: int) -> Counter[str]:
    """All at once."""
    return Counter(await asyncio.wait_for(
        asyncio.gather(*(asked(one, port) for one in clients)), WAITED
    ))  # fmt: skip


class Crowd:
    """Such clients in a process of their own: what they cost is not the server's."""

    def __init__(self, port: int) -> None:
        words = [sys.executable, "-m", "tests.reliability.clients", str(port)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)

    def round(self, **given: float) -> dict[str, int]:
        """How many of `drawn(**given)` came to which end."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(given) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def __enter__(self) -> "Crowd":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=300)


def main() -> None:
    for line in sys.stdin:
        came = asyncio.run(all_asked(drawn(**json.loads(line)), int(sys.argv[1])))
        sys.stdout.write(json.dumps(came) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
