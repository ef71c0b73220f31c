"""Ended requests of a run: their tokens as ids and text, the pages they held, and their model.

The one way to go on from here is to put the tokens through the model once more.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Branch, Page, Token
from engine.core.memory import require
from engine.core.run import Run
from engine.inference.executors.tensors.sequence_attention import check_price
from engine.inference.kept_tokens import kept
from engine.models.footprint import parameter_count
from engine.models.loading.find import Found, find, shipped
from engine.models.model import Model
from engine.models.text.tokenizer import Tokenizer, has_tokenizer

MODELLED = "This run is modelled: no model ran, so there is no attention to look at."
NONE_YET = (
    "No request of this run has ended yet. Ask the live engine something on its page, wait for the "
    "answer, then press Newer requests here."
)
WITHOUT = (
    "This run keeps no tokens of requests: it is not of a serving engine, or was saved before "
    "runs kept them."
)
HOLDS = ("take", "hit", "share", "copy", "swap_in")  # states by which an owner has a page


@dataclass(frozen=True, slots=True)
class Ended:
    """One request. `pages`: (first position, page) of the pages it held, in order; `moment`:
    seconds of the run just before it gave them back."""

    name: str
    tokens_N: np.ndarray
    pages: tuple[tuple[int, int], ...] = ()
    page_size: int = 1
    moment: float = 0.0
    config: dict[str, Any] = field(default_factory=dict)
    is_recorded: bool = False

    def found(self) -> Found:
        """The model it ran on. Raises BadInput where that cannot be had here."""
        name = str(self.config.get("model", ""))
        if self.is_recorded and name not in shipped():
            raise BadInput(
                f"attention: a recorded run of {name[:80]!r}; of models that come with the "
                "workbench alone is a recorded run computed again"
            )
        return find(name)

    def open(self) -> Model:
        """Its model. Raises BadInput where it cannot be had, or the request is too dear."""
        found = self.found()
        check_price(found.config, len(self.tokens_N))
        require(4.0 * parameter_count(found.config), f"model {found.name}", "take a smaller one")
        dtype = str(self.config.get("dtype", "float32"))
        return found.open(dtype, random=found.folder is None, seed=int(self.config.get("seed", 0)))

    def texts(self) -> list[str]:
        """Each token as a person reads it; ids where the model has no tokenizer."""
        folder = self.found().folder
        ids = self.tokens_N.tolist()
        if folder is None or not has_tokenizer(folder):
            return [str(token) for token in ids]
        tokenizer = Tokenizer(folder)
        return [tokenizer.decode([token], special=True) for token in ids]


def why_none(run: Run) -> str:
    """Why no request of a run can be looked at, as one sentence; "" where some can."""
    header = run.log.opened
    if kept(run.log.blobs):
        return ""
    if header is not None and header.clock == "virtual":
        return MODELLED
    return NONE_YET if run.state != "closed" else WITHOUT


def ended(run: Run, name: str) -> Ended:
    """The request of that name. Raises BadInput where the run has no tokens of it."""
    tokens = kept(run.log.blobs)
    if name not in tokens:
        why = (
            why_none(run) or f"request {name[:80]!r}: has not ended, or its tokens are kept no more"
        )
        raise BadInput(why)
    header = run.log.opened
    facts = header.facts if header is not None else {}
    size = max(1, int(facts.get("page_size", 1)))
    held: dict[int, int] = {}
    spoke, over = [0.0], run.log.duration
    for event in run.log.events:
        match event:
            case Page(owner=owner) if owner == name and event.state in HOLDS:
                held[event.start] = event.page
                spoke.append(event.time)
            case Token(thread=thread) if thread == name:
                spoke.append(event.time)
            case Branch(thread=thread, state="finished") if thread == name:
                over = event.time
    moment = max((time for time in spoke if time < over), default=0.0)
    pages = tuple(sorted((at, page) for at, page in held.items() if at < len(tokens[name])))
    config = dict(header.config) if header is not None else {}
    return Ended(name, tokens[name], pages, size, moment, config, run.live is None)
