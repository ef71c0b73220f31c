"""The real executor: tensors on this machine, under the wall clock.

In comes a step; page movements are done, the model runs over the paged cache, tokens are sampled.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from engine.cache.tensors import Storage
from engine.core.clock import WallClock, counted
from engine.hardware.measure import known
from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.inference.executors.executor import Built, Facts
from engine.inference.executors.settings import Settings
from engine.inference.executors.step_spans import covered
from engine.inference.executors.tensors import decode_graphs
from engine.inference.executors.tensors.asked import alone, probe_of
from engine.inference.executors.tensors.attention_mass import AttentionProbe
from engine.inference.executors.tensors.collaborating_drafters import CollaboratingDrafters
from engine.inference.executors.tensors.decode_graphs import DecodeGraphs
from engine.inference.executors.tensors.drafter import Drafter
from engine.inference.executors.tensors.early_exit import EarlyExit
from engine.inference.executors.tensors.embedding import Embedder, Embedding
from engine.inference.executors.tensors.gather import gather
from engine.inference.executors.tensors.guidance import Guidance
from engine.inference.executors.tensors.module_counts import tell_modules
from engine.inference.executors.tensors.rows_beside import RowsBeside
from engine.inference.executors.tensors.sampler import Drawn, Sampler
from engine.inference.requests.step import Result, Step, StepPart
from engine.inference.requests.view_sequences import NONE, ViewResult
from engine.kernels.norm.work import flops as norm_flops
from engine.models.batch import Batch
from engine.models.kv import in_fp8
from engine.models.loading.draft import find_draft
from engine.models.loading.find import find
from engine.models.loading.load import fits, require_memory
from engine.models.model import Model
from engine.models.text.tokenizer import Tokenizer, has_tokenizer
from engine.models.timing import NORMS, Part, timed_forward


class RealExecutor:
    """A model over its paged cache."""

    def __init__(
        self,
        model: Model,
        storage: Storage,
        facts: Facts,
        probe: AttentionProbe | None = None,
        sampler: Sampler | None = None,
        drafter: Drafter | None = None,
    ) -> None:
        self.model, self.storage, self.facts, self.probe = model, storage, facts, probe
        self.sample = sampler or Sampler(model.compiled, facts.eos)
        self.drafter = drafter
        self.exits: EarlyExit | None = None  # asked what the target will say
        self.guidance: Guidance | None = None
        self.off = 0  # places that rows are put back off in a realigned batch, which is wrong
        self.graphs: DecodeGraphs | None = None
        if model.device != "cpu" and decode_graphs.fits(model, storage.kv):
            nobody = storage.scratch * storage.kv.page_size
            self.graphs = DecodeGraphs(model, storage.kv, nobody)
        self.work = ForwardWork(model.config, str(model.dtype).removeprefix("torch."))
        self._embedder: Embedder | None = None  # once somebody asks
        self.variant = "fused" if model.fused else "kernels" if model.compiled else "torch"
        if model.device != "cpu":
            self.variant = "operators"

    def execute(self, step: Step) -> Result:
        """Page movements, drafts, then the forward pass, then a token a sample."""
        began = counted()
        storage, drawn = self.storage, None
        if step.realigned:
            self._realign(step)
        aligned = counted()
        if self.drafter is not None:
            drawn = self.drafter.draft(step)
        drafted = counted()
        storage.move_tokens(step.moves.slots)
        storage.swap_out(step.moves.swap_out)
        storage.copy(step.moves.copies)
        storage.swap_in(step.moves.swap_in)
        storage.move_states(step.moves.states_out, step.moves.states_in)
        batch, from_S = gather(step, storage.scratch)
        beside = RowsBeside(step, batch)
        logits, parts = self._forward(step, batch)
        taken = self.model.taken
        if logits.is_cuda and self._greedy(step) and not beside.count:
            result = Result(*self.sample.on_device(logits, from_S), 0.0)
        else:
            logits_RV = logits.cpu().numpy()
            own = len(logits_RV) - beside.count
            if self.guidance is not None:
                self.guidance.steer(step, logits_RV, from_S)
            result = self._drawn(step, logits_RV[:own], from_S, drawn)
            beside.put(result, logits_RV[own:], lambda more: self.model.forward(more, storage.kv))
        shape = self.work.shape(*step.everybody(), len(logits))
        result.flops, result.bytes = self.work.work(shape)
        if taken:
            tell_modules(result, self.work, shape, taken)
        if self.drafter is not None:
            result.draft_seconds = drafted - aligned
            result.flops += self.drafter.flops
            result.bytes += self.drafter.bytes
        if self.exits is not None and step.drafted:
            result.hits_S = self.exits.hits(from_S, result.tokens_S)
        if step.realigned:
            result.align_seconds = aligned - began
        if parts:
            asked = counted()
            result.parts = self._parts(parts, shape)
            result.profile_seconds = counted() - asked
        if step.sample_attention and self.probe is not None:
            asked = counted()
            if len(step.rows_B):
                result.attention_P = self.probe.mass(step, storage.kv, storage.scratch)
            if step.threads is not None and result.threads is not None:
                threads, scratch = step.threads, storage.scratch
                result.threads.mass_BN = self.probe.blocks(threads, storage.kv, scratch)
            result.attention_seconds = counted() - asked
        result.seconds = counted() - began
        return result

    def _forward(self, step: Step, batch: Batch) -> tuple[Tensor, list[Part]]:
        """The pass, and its parts where they are timed; an early exit speaks before it."""
        kv = self.storage.kv
        if self.exits is not None and step.drafted:
            self.exits.listen(batch, kv)
        if step.profile:
            return timed_forward(self.model, batch, kv)
        if self.graphs is not None and self.graphs.takes(batch):
            return self.graphs.forward(batch), []
        return self.model.forward(batch, kv), []

    def copy_seconds(self, pages_R: np.ndarray) -> float:
        """Steps make their own copies here."""
        return 0.0

    def embed(self, tokens_T: np.ndarray) -> Embedding:
        """What computes a prompt's vector; no page of the cache is touched."""
        self._embedder = self._embedder or Embedder(self.model)
        return self._embedder.begin(tokens_T)

    def _greedy(self, step: Step) -> bool:
        """Whether the step wants each sample's likeliest token and nothing else of the logits."""
        guided = self.guidance is not None and self.guidance.storage is not None
        if guided or step.rows.steers or step.threads is not None or step.drafts_B is not None:
            return False
        return bool(step.rows.plain[step.sample_rows_S].all())

    def _realign(self, step: Step) -> None:
        """Keys and values of the decodes, of the draft too, in a rectangle and back."""
        rows_D, starts_D = step.rows_B[: step.decodes], step.starts_B[: step.decodes]
        tables_DP = step.rows.tables[rows_D]
        self.storage.realign(tables_DP, starts_D, self.off)
        if self.drafter is not None:
            self.drafter.realign(tables_DP, starts_D, self.off)

    def _drawn(
        self, step: Step, logits_RV: np.ndarray, from_S: np.ndarray, drawn: Drawn | None
    ) -> Result:
        """Tokens of the rows, and of the threads, whose logits come after theirs."""
        threads, own = step.threads, len(logits_RV)
        if threads is not None:
            own -= len(threads.batch.logits_at_R)
        result = Result(NONE.astype(np.int32), NONE.astype(np.float32), 0.0)
        if own:
            result.tokens_S, result.logprobs_S, result.tops = self.sample(
                logits_RV[:own], from_S, step, drawn
            )
            if step.drafts_B is not None:
                result.draft_logprobs_S = _of_drafts(step, logits_RV, from_S, result)
        if threads is not None:
            result.threads = ViewResult(*threads.answer(logits_RV[own:]))
        return result

    def _parts(self, parts: list[Part], shape: Shape) -> list[StepPart]:
        """Timed parts with the work of the operations they cover."""
        works = self.work.works(shape)
        norms = norm_flops(shape.tokens * 2 * self.model.config.layers, self.model.config.hidden)
        found = []
        for name, covers, seconds in parts:
            flops, moved = covered(works, covers)
            flops += norms if name == NORMS else 0.0
            found.append(StepPart(name, self.variant, seconds, flops, moved))
        return found


def _of_drafts(step: Step, logits_RV: np.ndarray, from_S: np.ndarray, drawn: Result) -> np.ndarray:
    """Log-probabilities under the model of the draft after each sample; nonsense after the last."""
    assert step.drafts_B is not None and step.ahead_S is not None
    rows, own = step.rows, step.drafted + step.decodes
    known_S = rows.known[step.sample_rows_S] + step.ahead_S
    at_S = np.minimum(known_S, rows.tokens.shape[1] - 1)
    drafts_S, told_S = rows.tokens[step.sample_rows_S, at_S], np.arange(len(from_S))
    if step.parents_N is not None:  # the draft that lies there comes after another sample
        ahead_S = step.ahead_S[:own]
        some_S = ahead_S < step.drafts_B[step.sample_from_S[:own]]
        told_S[:own][some_S] += step.parents_N + 1 - ahead_S[some_S]
    apart_S = logits_RV[from_S[told_S], drafts_S] - logits_RV[from_S, drawn.tokens_S][told_S]
    return np.asarray(drawn.logprobs_S[told_S] + apart_S, np.float32)


def build(
    config: Settings, kv_cache_dtype: str = "auto", device: str = "cpu", activations: str = "auto",
    exact: bool = False,
) -> Built:  # fmt: skip
    """The model of a config over a cache of its size, with its tokenizer. Raises BadInput."""
    found = find(config.model)
    model = config.modules.of(config.streams.of(found.config, found.folder is not None))
    found = replace(found, config=model)
    alone(config, found.config)
    where: dict[str, Any] = {"seed": config.seed, "device": device}
    opened = found.open(config.dtype, random=found.folder is None, activations=activations, **where)
    opened.exact = exact
    tokenizer = tokenizer_of(found.folder)
    eos = tuple(dict.fromkeys(found.config.eos + (tokenizer.eos if tokenizer else ())))
    said = config.speculation
    names = said.collaborates.models if said.collaborates else (said.draft_model,)
    given = [find_draft(name, found) for name in names if name]
    drafts = [each.open(config.dtype, random=each.folder is None, **where) for each in given]
    executor = executor_for(config, opened, found.name, eos, drafts, kv_cache_dtype)
    return Built(executor, WallClock(), tokenizer)


def executor_for(
    config: Settings,
    model: Model,
    name: str,
    eos: tuple[int, ...] = (),
    drafts: Sequence[Model] = (),
    kv_cache_dtype: str = "auto",
) -> RealExecutor:
    """An executor of `model`, and of the models that draft for it, with the cache that `config`
    asks for. End tokens outside its vocabulary can never come, and are left out."""
    eos = tuple(token for token in eos if token < model.config.vocab)
    spec = model.spec if kv_cache_dtype == "auto" else in_fp8(model.spec, model.config)
    size = config.page_size * spec.bytes_per_token()
    both = size + sum(config.page_size * draft.spec.bytes_per_token() for draft in drafts)
    on, own, host = model.device, (config.pages + 1) * both, config.host_pages * both
    require_memory(own + host if on == "cpu" else own, f"{config.pages} pages", on)
    if on != "cpu":
        require_memory(host, f"{config.host_pages} pages of the host")
    state = spec.bytes_per_state()
    running = config.max_running if state else 0
    count = 2 * running + (running if config.host_pages else 0)
    require_memory(count * state, f"states of {running} running requests", on)
    facts = Facts(
        model=name,
        device=model.device,
        vocab=model.config.vocab,
        context=model.config.max_positions,
        layers=model.config.layers,
        heads=model.config.heads,
        bytes_per_page=float(size),
        eos=eos,
        dtype=str(model.dtype).removeprefix("torch."),
        bytes_per_state=float(state),
        both_ways=model.config.sees_both_ways,
        mask=model.config.mask,
        activations=model.activations,
        guides=fits((config.pages + 1 + config.host_pages) * (both + size)),
    ).under(known())
    said = config.speculation
    room = config.pages, config.page_size, config.host_pages
    compiled = model.compiled or on != "cpu"
    sampler = Sampler(compiled, eos, said.rejects, said.broken != "no_residual")
    stored = [(draft, Storage(draft.spec, *room, draft.device)) for draft in drafts]
    each = [Drafter(*pair, sampler, said.width) for pair in stored]
    drafter = each[0] if each else None
    if each and said.collaborates is not None:
        drafter = CollaboratingDrafters(each, said.collaborates)
    storage = Storage(spec, *room, model.device, running)
    executor = RealExecutor(model, storage, facts, probe_of(config, model), sampler, drafter)
    executor.guidance = Guidance(model, room)
    executor.off = int(said.broken == "misaligned")
    if (how := said.mirrors) is not None:
        seed = config.seed if how.random else None
        executor.exits = EarlyExit(model, how.exit, how.candidates, seed)
    return executor


def tokenizer_of(folder: Path | None) -> Tokenizer | None:
    return Tokenizer(folder) if folder is not None and has_tokenizer(folder) else None
