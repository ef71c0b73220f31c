"""A request: a prompt, how to sample from it, and where it stands."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from engine.core.config import Config, from_dict, knob
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.guide import Guide
from engine.inference.requests.prompt_scores import PromptScores
from engine.inference.requests.stop_texts import StopTexts

TokenId = Annotated[int, Field(ge=0)]
Bias = tuple[TokenId, Annotated[float, Field(ge=-100.0, le=100.0)]]
State: TypeAlias = Literal[
    "queued", "running", "preempted", "swapped", "finished", "aborted", "rejected"
]
OVER = ("finished", "aborted", "rejected")
UNPLANNED = 2**62  # the rank of a request no plan knows
NO_TOKENS = np.zeros(0, np.int32)
LOST = "the model's logits are no numbers (NaN); its weights are damaged, or its dtype too narrow"


class Sampling(Config):
    """How tokens are drawn. Temperature 0 takes the likeliest token."""

    temperature: float = knob(0.0, "0 takes the likeliest token", low=0.0, high=10.0)
    top_k: int = knob(0, "Keep the k likeliest tokens; 0 keeps all", low=0, high=1 << 20)
    top_p: float = knob(1.0, "Keep the likeliest tokens up to this mass", low=1e-9, high=1.0)
    min_p: float = knob(
        0.0, "Keep tokens at least this fraction as likely as the likeliest", low=0.0, high=1.0
    )
    repetition_penalty: float = knob(
        1.0, "Divides the logits of tokens seen (prompt included)", low=0.01, high=10.0
    )
    presence_penalty: float = knob(
        0.0, "Taken off the logits of tokens generated", low=-10.0, high=10.0
    )
    frequency_penalty: float = knob(
        0.0, "Taken off the logits for each time a token was generated", low=-10.0, high=10.0
    )
    max_tokens: int = knob(64, "Tokens to generate at most", low=1, high=1 << 24, unit="tokens")
    min_tokens: int = knob(0, "Tokens before an end is allowed", low=0, high=1 << 24, unit="tokens")
    ignore_eos: bool = knob(False, "Go on after the model's own end token")
    n: int = knob(1, "Samples of one prompt, forked after it", low=1, high=1024)
    logprobs: int = knob(0, "How many likeliest tokens to report at each position", low=0, high=64)
    seed: int | None = knob(
        None, "Draws depend only on this and the position", low=0, high=2**63 - 1
    )
    stop: tuple[str, ...] = knob((), "Texts that end the answer")
    stop_tokens: tuple[TokenId, ...] = knob((), "Token numbers that end the answer")
    logit_bias: tuple[Bias, ...] = knob((), "Pairs (token, added to its logit)")
    guidance: float = knob(
        1.0, "Classifier-free guidance: how far logits are taken from the negative prompt's to the "
        "prompt's own and beyond; 1 asks for the prompt's alone", low=0.0, high=100.0,
    )  # fmt: skip
    negative_prompt: str = knob("", "What guidance steers answers away from")

    @cached_property
    def biases(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens whose logits are changed, int64, and by how much, float32; made once: a thousand
        pairs are looked at by each of a request's answers at each token."""
        tokens, biases = zip(*self.logit_bias, strict=True)
        return np.array(tokens, np.int64), np.array(biases, np.float32)

    @property
    def bare(self) -> bool:
        """Whether logits are drawn from as the model gives them, once an end is allowed."""
        penalties = self.presence_penalty or self.frequency_penalty
        return self.repetition_penalty == 1 and not penalties and not self.logit_bias


def sampling(**fields: Any) -> Sampling:
    """Sampling from a client's fields. Raises BadInput naming the first field that is wrong."""
    return from_dict(Sampling, fields)


@dataclass(slots=True, eq=False)
class Source:
    """Who brought several requests at once: the prompts of one call, the samples of one prompt."""

    running: int = 0  # of its requests; written by the engine alone, …
    entered: int = 0  # … as is the step in which one of them last began to run


@dataclass(slots=True, eq=False)
class Request:
    """One prompt and its continuation. The engine gives it an id ("r0", forks "r0.1")."""

    prompt: np.ndarray  # int32 token numbers
    sampling: Sampling = field(default_factory=Sampling)
    arrival: float = 0.0  # seconds since the run opened
    user: str = ""
    priority: int = 0  # higher goes first
    salt: str = ""  # only requests of one salt share prefixes
    source: Source | None = None  # of several; None: it came alone
    prompt_tops: int = -1  # score the prompt's own tokens, with so many likeliest; -1: do not
    guide: Guide | None = None  # the grammar its answer is held to
    canvas: Canvas | None = None  # its answer is a block of masks that steps fill in, in any order
    negative: np.ndarray | None = None  # int32 tokens that guidance steers it away from
    replaces: "Request | None" = None  # an earlier state of its input, which ends when this comes
    id: str = ""
    parent: str = ""  # forked from
    # What a policy that saw the whole job said of it (Ordering.prepare).
    rank: int = UNPLANNED  # place in the planned order
    group: int = -1  # requests with this prefix in common
    shared: int = 0  # tokens of the prompt they have in common
    on_token: Callable[["Request", int, str, float], None] | None = None  # token, text, logprob
    on_end: Callable[["Request"], None] | None = None
    # Where it stands; written by the engine alone.
    state: State = "queued"
    number: int = 0  # order of arrival at the engine
    row: int = -1  # in the persistent batch; -1 outside
    tokens: np.ndarray = field(default_factory=lambda: NO_TOKENS)  # prompt and answer
    logprobs: list[float] = field(default_factory=list)
    tops: list[tuple[tuple[int, float], ...]] = field(default_factory=list)  # likeliest of each
    prompt_scores: PromptScores | None = None  # of the whole prompt, once some of it is scored
    stops: StopTexts | None = None  # of its stop texts, how much has come
    told: int = 0  # characters of the text given to on_token
    text: str = ""  # the answer; cut before a stop text
    reason: str = ""  # stop, length, abort, or why it was rejected
    fault: str = ""  # why its answer, begun, is none
    queued_at: int = 0  # the step in which it began to wait, …
    queued_with: int = 0  # … and its tokens then: it waits still where it comes back without more
    urgent: bool = False  # waited longer than the engine's patience
    started: bool = False  # has run before
    seed: int = 0  # its draws depend on this and the position; 0: the engine gives one
    keeps: int = 0  # rows kept free for its samples
    host_pages: np.ndarray | None = None  # where its cache lies while swapped out
    reused: int = 0  # tokens of it that the prefix tree held when it was last let in
    sent_pages: np.ndarray | None = None  # what another replica computed lies in these, held by it
    host_state: int = -1  # where its recurrent state lies while swapped out
    matched: int = 0  # tokens of it in the prefix tree when it was last looked for
    computed: int = 0  # tokens whose keys and values are cached (while swapped out, or as sent)

    @property
    def watched(self) -> bool:
        """Whether each of its tokens has to be looked at."""
        wish = self.sampling
        own = wish.stop or wish.stop_tokens or wish.logprobs
        return bool(own) or self.guide is not None or self.on_token is not None

    @property
    def joins(self) -> bool:
        """Whether what the cache has of its beginning need not be computed."""
        return self.prompt_tops < 0 and self.canvas is None

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in OVER

    @property
    def generated(self) -> np.ndarray:
        """Token numbers generated so far (those of a running request reach here when it leaves)."""
        return self.tokens[len(self.prompt) :]
