"""What one client costs another of a served model: a chat's template rendered aside, and a
neighbour's tokens and short answers while requests come that are as large as they may be.

By the wall's clock; what other programs take of the machine meanwhile stands beside it.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.paths import datasets
from engine.models.text.chat import Template
from engine.models.text.renderer import Renderer
from workbench.benches._large_requests import KINDS, MOST, body
from workbench.benches._neighbour import OWN, Neighbour, ask, server
from workbench.machine_load import MachineLoad

NAME = "serving"
ABOUT = "a chat's template in a process of its own; a neighbour of the largest requests: ms more"
RENDERED, DELAYED = 2.0, 100.0  # milliseconds more, at most
QUIET = "nothing beside"
# As many families write a conversation.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' "
    "+ message['content'] | trim + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TURNS = {"a question": 1, "twenty turns": 20}
GIVEN = {"add_generation_prompt": True, "bos_token": "<s>"}


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One row a kind: milliseconds more, and of what they are more."""
    say("a chat's template, here and in the process that renders for the server")
    rows = _rendered(400 if full else 100)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / OWN
        shutil.copytree(datasets() / "models" / "stdlib-5m", model)
        (model / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
        with server(model) as port:
            rows += _neighbours(port, 5 if full else 1, say)
    return rows


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows, in milliseconds."""
    head = ("beside", "usual", "more in the median", "more at most", "limit", "times", "others")
    return [head, *(
        (row["name"], f"{row['usual']:.2f} ms", f"{row['median']:.2f} ms", f"{row['most']:.1f} ms",
         f"{row['limit']:.0f} ms" if row["limit"] else "", str(row["times"]),
         f"{row['others']:.0%}") for row in rows
    )]  # fmt: skip


def _rendered(times: int) -> list[dict[str, Any]]:
    """Here and aside in turns; the limit is of the median."""
    here, aside, rows = Template(TEMPLATE), Renderer(), []
    try:
        for name, turns in TURNS.items():
            said = [{"role": "user", "content": "What do these numbers add up to? " * 4}] * turns
            took = np.zeros((times + 5, 2))
            with MachineLoad() as other:
                for at in range(len(took)):
                    begun = time.perf_counter()
                    here.render(said, **GIVEN)
                    between = time.perf_counter()
                    aside.render(TEMPLATE, said, **GIVEN)
                    took[at] = between - begun, time.perf_counter() - between
            usual, more = took[5:, 0], took[5:, 1] - took[5:, 0]
            rows.append(_row(f"a template: {name}", usual, more, RENDERED, other.share))
    finally:
        aside.close()
    return [{**row, "holds": row["median"] < RENDERED} for row in rows]


def _neighbours(port: int, times: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each kind of request and each thing the neighbour does; the limit is of the most,
    beyond what it is with nothing beside."""
    found: dict[str, list[tuple[list[float], list[float], float]]] = {}
    made = {name: (path, body(OWN, fields)) for name, of in KINDS.items()
            for path, fields in [of(MOST)]}  # fmt: skip
    for turn in range(times + 1):  # the first warms up
        for name in (QUIET, *KINDS):
            say(f"{name}, {turn} of {times}" if turn else f"{name}, to warm up")
            with MachineLoad() as other, Neighbour(port) as one:
                time.sleep(0.1)
                if name == QUIET:
                    time.sleep(1.0)
                else:
                    ask(port, *made[name])
                time.sleep(0.1)
            if turn:
                found.setdefault(name, []).append((one.tokens, one.chats, other.share))
    rows = []
    for place, what in enumerate(("token", "chat")):
        usual = np.concatenate([np.array(took[place]) for took in found[QUIET]])
        for name, each in found.items():
            took = np.concatenate([np.array(one[place]) for one in each])
            others = float(np.mean([one[2] for one in each]))
            more = took - np.median(usual)
            rows.append(_row(f"a neighbour's {what}: {name}", usual, more, DELAYED, others))
    return [{**row, "holds": row["most"] < DELAYED} for row in rows]


def _row(
    name: str, usual: np.ndarray, more: np.ndarray, limit: float, others: float
) -> dict[str, Any]:
    """In milliseconds."""
    return {"name": name, "usual": 1e3 * float(np.median(usual)), "limit": limit,
            "median": 1e3 * float(np.median(more)), "most": 1e3 * float(more.max()),
            "times": len(more), "others": others}  # fmt: skip
