"""Draws continuations of many prompts at once from weights that are being trained.

In come prompts as token numbers, out come the tokens drawn and their log-probabilities. Plain torch
with keys and values kept; rows leave the batch as they end. Shape letters: B rows, T new tokens,
S positions kept, C hidden, H query heads, G key/value heads, R query heads of one of those, D head
size, V vocabulary.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import norm
from engine.models.parameters import layer_parameters, roles
from engine.models.reference import (
    embed,
    feed_forward,
    head,
    keys_values,
    linear,
    ordered,
    queries,
)

ROWS = 256  # in one batch: enough to fill matrix products, few enough for the caches
SPARSE = 0.8  # of the rows still run: below it, the others are taken out


@dataclass(slots=True)
class Drawn:
    """Tokens drawn after one prompt, and the log-probability each was drawn with."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class Sampler:
    """The weights of a dense Llama-like model, ready to be drawn from."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
        self.config = config
        self.weights = {name: weight.detach() for name, weight in weights.items()}
        self.layers = [
            roles(layer_parameters(config, layer), self.weights) for layer in range(config.layers)
        ]

    @torch.inference_mode()
    def draw(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        window: int,
        stops: Collection[int],
        temperature: float,
        generator: torch.Generator,
    ) -> list[Drawn]:
        """Each prompt's continuation, to a stop (included) or until the window is full.

        Temperature 0 takes the likeliest token. A prompt that fills the window gets nothing.
        """
        found = [Drawn() for _ in prompts]
        order = [row for row, prompt in enumerate(prompts) if len(prompt) < window]
        order.sort(key=lambda row: len(prompts[row]))  # alike lengths together: little padding
        for at in range(0, len(order), ROWS):
            rows = order[at : at + ROWS]
            batch = _Batch(self, [prompts[row] for row in rows], [found[row] for row in rows])
            batch.run(window, frozenset(stops), temperature, generator)
        return found


class _Batch:
    """Rows drawn together. `end_B`: tokens of each so far."""

    def __init__(self, sampler: Sampler, prompts: list[Sequence[int]], found: list[Drawn]) -> None:
        self.sampler, self.found = sampler, found
        self.end_B = torch.tensor([len(prompt) for prompt in prompts])
        self.tokens_BT = torch.zeros(len(prompts), int(self.end_B.max()), dtype=torch.long)
        for row, prompt in enumerate(prompts):
            self.tokens_BT[row, : len(prompt)] = torch.tensor(prompt)
        self.kept: list[tuple[Tensor, Tensor]] = []

    def run(
        self, window: int, stops: frozenset[int], temperature: float, generator: torch.Generator
    ) -> None:
        """Draw until every row has stopped or filled the window."""
        config = self.sampler.config
        shape = (len(self.found), config.kv_heads, window, config.head_dim)
        self.kept = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(config.layers)]
        logits_BV = self._forward(self.tokens_BT, torch.zeros_like(self.end_B))
        running = torch.ones(len(self.found), dtype=torch.bool)
        while True:
            tokens_B, logprobs_B = pick(logits_BV, temperature, generator)
            self.end_B = self.end_B + running
            self._note(tokens_B, logprobs_B, running, stops, window)
            count = int(running.sum())
            if not count:
                return
            if count < SPARSE * len(running):
                tokens_B = tokens_B[running]
                self._shrink(running)
                running = running[running]
            logits_BV = self._forward(tokens_B[:, None], self.end_B - 1)

    def _note(
        self, tokens_B: Tensor, logprobs_B: Tensor, running: Tensor, stops: frozenset[int],
        window: int,
    ) -> None:  # fmt: skip
        """Write down what running rows drew; those that end are no longer `running`."""
        tokens, logprobs, ends = tokens_B.tolist(), logprobs_B.tolist(), self.end_B.tolist()
        for row in running.nonzero().flatten().tolist():
            self.found[row].tokens.append(tokens[row])
            self.found[row].logprobs.append(logprobs[row])
            if tokens[row] in stops or ends[row] >= window:
                running[row] = False

    def _shrink(self, running: Tensor) -> None:
        self.found = [one for one, runs in zip(self.found, running.tolist(), strict=True) if runs]
        self.end_B = self.end_B[running]
        self.kept = [(k[running], v[running]) for k, v in self.kept]

    def _forward(self, tokens_BT: Tensor, first_B: Tensor) -> Tensor:
        """logits_BV after each row's last token; `tokens_BT` stand from `first_B` on.

        What pads a row lies behind its end, where nothing looks until it is written over.
        """
        sampler, config = self.sampler, self.sampler.config
        B, T = tokens_BT.shape
        rows_B1 = torch.arange(B)[:, None]
        room = self.kept[0][0].shape[2]
        positions_BT = (first_B[:, None] + torch.arange(T)).clamp(max=room - 1)
        x_BTC = embed(config, sampler.weights, tokens_BT)
        order = ordered(config, x_BTC, positions_BT)
        S = int(positions_BT.max()) + 1
        hidden_BTS = torch.arange(S) > positions_BT[..., None]
        for layer, (w, (k_BGSD, v_BGSD)) in enumerate(zip(sampler.layers, self.kept, strict=True)):
            y_BTC = norm(config, x_BTC, w, "attention_norm")
            q_BTHD = queries(config, w, y_BTC, order.turn)
            k_BTGD, v_BTGD = keys_values(config, w, y_BTC, order.turn)
            k_BGSD[rows_B1, :, positions_BT] = k_BTGD
            v_BGSD[rows_B1, :, positions_BT] = v_BTGD
            kept = k_BGSD[:, :, :S], v_BGSD[:, :, :S]
            o_BTC = _attend(q_BTHD * config.scale(layer), *kept, hidden_BTS)
            x_BTC = x_BTC + linear(w, "out", o_BTC)
            x_BTC = x_BTC + feed_forward(config, w, norm(config, x_BTC, w, "mlp_norm"))
        last_B = self.end_B - 1 - first_B
        return head(config, sampler.weights, x_BTC[torch.arange(B), last_B][:, None])[:, 0]


def _attend(q_BTHD: Tensor, k_BGSD: Tensor, v_BGSD: Tensor, hidden_BTS: Tensor) -> Tensor:
    """o_BTC of scaled queries, the heads of a token side by side."""
    B, T, H, D = q_BTHD.shape
    G = k_BGSD.shape[1]
    q_BGTRD = q_BTHD.view(B, T, G, H // G, D).transpose(1, 2)
    scores_BGTRS = q_BGTRD.flatten(2, 3) @ k_BGSD.transpose(2, 3)
    scores_BGTRS = scores_BGTRS.view(B, G, T, H // G, -1)
    scores_BGTRS = scores_BGTRS.masked_fill(hidden_BTS[:, None, :, None], float("-inf"))
    o_BGTRD = scores_BGTRS.softmax(-1).flatten(2, 3) @ v_BGSD
    return o_BGTRD.view(B, G, T, H // G, D).transpose(1, 2).reshape(B, T, H * D)


def pick(
    logits_BV: Tensor, temperature: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Tokens drawn at that temperature and their log-probabilities there."""
    if not temperature:
        logprobs_BV = logits_BV.log_softmax(-1)
        logprobs_B, tokens_B = logprobs_BV.max(-1)
        return tokens_B, logprobs_B
    logprobs_BV = (logits_BV / temperature).log_softmax(-1)
    tokens_B = torch.multinomial(logprobs_BV.exp(), 1, generator=generator)[:, 0]
    return tokens_B, logprobs_BV.gather(1, tokens_B[:, None])[:, 0]
