"""Speculation policies: who drafts the tokens that a step verifies, and by which rule.

A drafting policy proposes up to `tokens` tokens for each decoding request, in a chain or a tree;
one pass of the model verifies them all, each request keeps the path that holds and one token more,
the rest is rolled back.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from engine.core.config import Policy, knob

if TYPE_CHECKING:
    from engine.kernels.drafts.lookup import Places


class Mirrored(NamedTuple):
    """Drafting beside the target, from what it would say if it ended at a layer between."""

    exit: float  # share of the target's layers before its early exit
    candidates: int  # likeliest tokens of an early exit that are drafted on from
    hit: float  # modelled: share of steps whose next token is among them
    streamed: int  # modelled: tokens that a pass of the draft gives
    exchange: float  # modelled: seconds to tell the other device
    waits: bool  # a mistake: the target waits for the drafts
    random: bool  # a mistake: candidates are any tokens


class Collaborating(NamedTuple):
    """Drafting by several models at once, each on a node of its own."""

    models: tuple[str, ...]  # that draft
    routed: int  # of them that draft together for a request
    wrongly: bool  # a mistake: those that a request is worst drafted by
    found: float  # modelled: share of requests whose specialist is among those routed to
    apart: float  # modelled: share of drafts that are right where it is not
    device: str  # modelled: of a node
    exchange: float  # modelled: seconds to tell the other nodes, or the target
    waits: bool  # a mistake: nodes draft only while the target waits


Fault = Literal["none", "one_length", "misaligned", "shifted", "no_residual"]


class Speculation(Policy):
    """What is drafted before a step."""

    folder = "engine.inference.policies.drafters"

    @property
    def drafts(self) -> int:
        """Tokens drafted for a request at most; 0: nothing ever is."""
        return 0

    @property
    def width(self) -> int:
        """Drafts of a request that may stand side by side; 1: its drafts are a chain."""
        return 1

    @property
    def draft_model(self) -> str:
        """The model that drafts, run by the executor; empty where tokens alone tell."""
        return ""

    @property
    def rejects(self) -> bool:
        """Whether sampled drafts are verified by rejection sampling, else by equal draws."""
        return False

    @property
    def broken(self) -> Fault:
        """What verification gets wrong."""
        return "none"

    @property
    def pads(self) -> bool:
        """Whether rows verified together lie in a rectangle, realigned where lengths differ."""
        return False

    @property
    def rightness(self) -> float:
        """Modelled runs: the probability that a draft is right if those before it were."""
        return 0.0

    @property
    def mirrors(self) -> Mirrored | None:
        """How the target's early exits let it draft beside the target, on a device of its own."""
        return None

    @property
    def collaborates(self) -> Collaborating | None:
        """How several models draft together, each on a node of its own."""
        return None

    @property
    def drafts_on(self) -> str:
        """Modelled runs: the device that drafts; empty: one like the target's, ranks alike."""
        return ""

    def proposes(self, decoding: int) -> bool:
        """Whether anything is drafted with so many requests decoding."""
        return False

    def next_length(self, length: int, waited: float) -> int:
        """Drafts of a request in the next step, after one of `length` in which the target waited
        for them for a share of its seconds."""
        return self.drafts

    @property
    def second(self) -> float:
        """Modelled runs: the probability that a draft is right where those beside it, before it,
        are wrong."""
        return 0.0

    def propose(
        self, tokens_RW: np.ndarray, rows_D: np.ndarray, known_R: np.ndarray, places: "Places",
        drafts_DK: np.ndarray, parents_DK: np.ndarray,
    ) -> None:  # fmt: skip
        """Fill drafts_DK for rows `rows_D`, each with `known_R` tokens; -1 beyond what is found.

        parents_DK comes as a chain; a tree says of each draft which one before it it follows, -1:
        the row's last token. Asked only where no model drafts. `places`, kept by the engine from
        step to step: where n-grams end. By itself a policy finds nothing.
        """
        drafts_DK[:] = -1


class Drafting(Speculation):
    """What all that draft have in common."""

    tokens: int = knob(4, "Tokens drafted for a request in a step", low=1, high=64, unit="tokens")
    branches: int = knob(
        1, "Drafts that may stand side by side: 1 is a chain, more a tree, whose paths are "
        "verified in the same pass, each token seeing its own ancestors", low=1, high=16,
    )  # fmt: skip
    largest_batch: int = knob(
        8192, "Draft nothing with more requests decoding", low=1, high=8192, log=True
    )
    verification: Literal["match", "rejection"] = knob(
        "match", "Sampled drafts are kept where the target draws the same (a seed's answers are as "
        "without drafts), or by rejection sampling (the target's distribution, more are kept)",
    )  # fmt: skip
    acceptance: float = knob(
        0.7, "Modelled runs: share of drafts that are right where those before were",
        low=0.0, high=1.0,
    )  # fmt: skip
    second_chance: float = knob(
        0.3, "Modelled runs: share of drafts that are right where those beside them are wrong",
        low=0.0, high=1.0,
    )  # fmt: skip
    alignment: Literal["paged", "padded"] = knob(
        "paged", "What holds a ragged batch together: the page table, or a padded rectangle that "
        "keys and values are copied into anew wherever lengths differ",
    )  # fmt: skip
    fault: Fault = knob(
        "none", "What goes wrong: every request keeps as many drafts as the luckiest of the batch, "
        "the shorter rows of a realigned batch land one place off, each draft is held against the "
        "token after its own, or a refused draft is drawn again from the whole distribution",
        group="faults",
    )  # fmt: skip

    @property
    def drafts(self) -> int:
        return self.tokens

    @property
    def width(self) -> int:
        return self.branches

    @property
    def second(self) -> float:
        return self.second_chance

    @property
    def rejects(self) -> bool:
        return self.verification == "rejection"

    @property
    def broken(self) -> Fault:
        return self.fault

    @property
    def pads(self) -> bool:
        return self.alignment == "padded"

    @property
    def rightness(self) -> float:
        return self.acceptance

    def proposes(self, decoding: int) -> bool:
        return decoding <= self.largest_batch
