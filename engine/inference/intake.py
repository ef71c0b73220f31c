"""Intake: validates requests, gives ids and seeds, aborts and forks; keeps the live ones."""

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Branch
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Facts
from engine.inference.policies.policy import View
from engine.inference.policies.unmasking import Unmasking
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.request import Request, Sampling, Source
from engine.inference.scheduler import Scheduler
from engine.kernels import token_numbers
from engine.kernels.compiled import settled
from engine.kernels.draws import mix, seed_of

_outside = settled(token_numbers.outside)
PLAIN = Sampling()
ONE_BY_ONE = (  # what asks for tokens that come one after another
    "n", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
    "min_tokens", "logprobs", "logit_bias",
)  # fmt: skip


def validate(request: Request, facts: Facts, unmasking: Unmasking | None = None) -> None:
    """Refuse what makes no sense for this model, whoever asks. Raises BadInput.

    Of a masked-diffusion model every answer is a block of masks, which `unmasking` decides.
    """
    name = request.id or "request"
    try:
        prompt = np.ascontiguousarray(request.prompt, np.int32)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{name}: the prompt is no list of token numbers") from None
    if prompt.ndim != 1 or not len(prompt):
        raise BadInput(f"{name}: the prompt is empty; give at least one token")
    if len(prompt) >= facts.context:
        raise BadInput(
            f"{name}: the prompt has {len(prompt)} tokens, the model takes {facts.context} "
            "with the answer; shorten it"
        )
    if _outside(prompt, facts.vocab):
        raise BadInput(f"{name}: the prompt has a token outside 0 to {facts.vocab - 1}")
    wish = request.sampling
    if wish.logit_bias or wish.stop_tokens:
        for field, tokens in _named_tokens(wish):
            if tokens and max(tokens) >= facts.vocab:
                raise BadInput(f"{name}: {field} has a token outside 0 to {facts.vocab - 1}")
    request.prompt = request.tokens = prompt
    if facts.mask and unmasking is not None and request.canvas is None:
        request.canvas = Canvas(facts.mask[0], unmasking)
    if request.canvas is not None:
        _begin_canvas(request, request.canvas, name, facts)


def _begin_canvas(request: Request, canvas: Canvas, name: str, facts: Facts) -> None:
    """Put a block of `max_tokens` masks behind the prompt. Raises BadInput."""
    wish, known = request.sampling, len(request.prompt)
    if not facts.both_ways:
        raise BadInput(
            f"{name}: {facts.model} on {facts.device} does not say what stands at masks; run a "
            "model whose layers see a whole text, with tensors"
        )
    if not 0 <= canvas.mask < facts.vocab:
        raise BadInput(f"{name}: mask {canvas.mask} is no token of 0 to {facts.vocab - 1}")
    if known + wish.max_tokens > facts.context:
        raise BadInput(
            f"{name}: a prompt of {known} tokens and a block of {wish.max_tokens} masks; the model "
            f"takes {facts.context} together"
        )
    if request.guide is not None or request.prompt_tops >= 0:
        raise BadInput(f"{name}: a block of masks has no grammar, and its prompt no scores")
    for field in ONE_BY_ONE:
        if getattr(wish, field) != getattr(PLAIN, field):
            raise BadInput(f"{name}: a block of masks is not decided by {field}; leave it out")
    masks = np.full(wish.max_tokens, canvas.mask, np.int32)
    request.tokens = np.concatenate([request.prompt, masks])
    canvas.begin(wish.max_tokens)


def _named_tokens(wish: Sampling) -> tuple[tuple[str, list[int]], ...]:
    return (
        ("logit_bias", [token for token, _ in wish.logit_bias]),
        ("stop_tokens", list(wish.stop_tokens)),
    )


class LiveRequests(dict[str, Request]):
    """Requests that are not over, by id."""

    def __init__(self) -> None:
        super().__init__()
        self._arrivals = 0
        self._forks: dict[str, int] = {}

    def name(self, request: Request) -> None:
        """Give `request` its number, and an id where it has none."""
        request.number = self._arrivals
        self._arrivals += 1
        request.id = request.id or f"r{request.number}"

    def child_id(self, parent_id: str) -> str:
        """An id for one more fork of a request."""
        place = self._forks.get(parent_id, 0) + 1
        while f"{parent_id}.{place}" in self:
            place += 1
        self._forks[parent_id] = place
        return f"{parent_id}.{place}"

    def no_fork(self, parent_id: str) -> None:
        """Nothing was forked from `parent_id` after all: there is no such request."""
        self._forks.pop(parent_id, None)

    def over(self, request: Request) -> None:
        """`request` has ended, however it did; whoever listens to it hears so."""
        if self.get(request.id) is request:
            del self[request.id]
            self._forks.pop(request.id, None)
        if request.on_end is not None:
            try:  # noqa: SIM105 - once for each request that ever ends
                request.on_end(request)
            except Exception:
                pass


class Intake:
    """The loop's own side of add, abort and fork. Not to be called from other threads."""

    def __init__(
        self, config: InferenceConfig, scheduler: Scheduler, requests: LiveRequests
    ) -> None:
        self.config, self.scheduler, self.requests = config, scheduler, requests
        self.cache = scheduler.cache
        self.step = 0

    def add(self, request: Request) -> None:
        """`request` begins to wait, or is rejected."""
        if request.replaces is not None:  # what it has computed stays in the prefix tree
            self.scheduler.abort(request.replaces, "its input went on")
            request.replaces = None
        if request.id in self.requests:
            request.state, request.reason = "rejected", "its id is in use"
            self.requests.over(request)
            return
        wish = request.sampling
        if wish.seed is not None:
            request.seed = wish.seed
        elif not request.seed:
            request.seed = seed_of(self.config.seed, request.number)
        self.scheduler.running.masked |= request.canvas is not None
        if wish.guidance != 1.0:  # its pages hold its second row too
            request.salt = f"{request.salt} guided {request.number}"
        self.requests[request.id] = request
        self.cache.emit(Branch(self.cache.clock.now(), request.id, request.parent, "queued"))
        refusal = self.scheduler.admission.refusal(request)
        if refusal:
            self.scheduler.reject(request, refusal)
            return
        if wish.n > 1:
            request.source = request.source or Source()
            new_id = self.requests.child_id
            children = [self._child(request, new_id(request.id)) for _ in range(1, wish.n)]
            self.scheduler.admission.waiting_forks[request.id] = children
        self.scheduler.enqueue(request, self.step, self._view)

    def refuse(self, request: Request, why: str) -> None:
        """`request` was no request at all; it counts as rejected."""
        self.cache.emit(Branch(self.cache.clock.now(), request.id, request.parent, "queued"))
        self.scheduler.reject(request, why)

    def abort(self, request_id: str, why: str) -> None:
        """End a request that is not over; others are ignored."""
        request = self.requests.get(request_id)
        if request is not None:
            self.scheduler.abort(request, why)

    def withdraw(self, request: Request) -> bool:
        """`request`, which waits and has not begun, is another engine's from now on; False where it
        has begun."""
        if request not in self.scheduler.queue or request.started:
            return False
        self.scheduler.queue.remove(request)
        self.scheduler.next_use.goes(request)
        if request.host_pages is not None:  # its beginning was found there: others may need room
            self.cache.drop_host(request.id, request.host_pages)
            request.host_pages = None
        del self.requests[request.id]
        return True

    def fork(self, parent_id: str, child_id: str) -> None:
        """A second thread goes on from where the parent is."""
        parent = self.requests.get(parent_id)
        if parent is None:
            self.requests.no_fork(parent_id)
        elif child_id not in self.requests:
            child = self._child(parent, child_id)
            if parent.sampling.guidance != 1.0 or parent.canvas is not None:
                what = "a guided request" if parent.canvas is None else "a block of masks"
                self.scheduler.reject(child, f"{what} has one answer")
                return
            self.scheduler.fork(parent, child, self.step, self._view)

    def _child(self, parent: Request, child_id: str) -> Request:
        sampling = parent.sampling.model_copy(update={"n": 1})
        child = Request(
            parent.prompt,
            sampling,
            parent.arrival,
            parent.user,
            parent.priority,
            parent.salt,
            source=parent.source,
            id=child_id,
            parent=parent.id,
            on_token=parent.on_token,
            on_end=parent.on_end,
            guide=None if parent.guide is None else parent.guide.fork(),
        )
        child.tokens, child.text, child.told = parent.tokens, parent.text, parent.told
        self.requests.name(child)
        place = int(child_id.rpartition(".")[2])
        child.seed = mix(parent.seed ^ (place << 32)) >> 1
        self.requests[child_id] = child
        self.cache.emit(Branch(self.cache.clock.now(), child_id, parent.id, "queued"))
        return child

    def _view(self) -> View:
        return self.scheduler.view(self.step, self.cache.clock.now())
