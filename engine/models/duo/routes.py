"""Feed-forwards of two sizes in every layer (Duo-LLM, arXiv 2410.10846): which one a token takes,
and what is counted of it.

Shape letters: B sequences, T tokens, C hidden, L layers, M modules (none, small, big), P routes.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from engine.models.duo.shape import LETTERS, Duo

NONE, SMALL, BIG = range(3)
PREFIX = {SMALL: "small.", BIG: ""}  # of a module's roles


class Routes:
    """Where the tokens of one forward pass go, told layer by layer; any shape of tokens, the last
    axis running along the text. `given`: by whom else it is decided, int64 [..., T, L]."""

    def __init__(
        self, duo: Duo, layers: int, positions_T: Tensor, given: Tensor | None = None
    ) -> None:
        self.duo, self.layers, self.given = duo, layers, given
        if given is None and duo.routes:
            self.given = table(duo.routes)[positions_T.cpu() % len(duo.routes)]
        self.left_T = torch.full_like(positions_T, duo.big)
        self.taken: list[Tensor] = []  # int64 of each layer so far

    def take(self, layer: int, logits: Callable[[], Tensor]) -> Tensor:
        """Which module each token takes in this layer; `logits` are the router's, [..., T, L]:
        above 0 for a big one, by how many big ones the token may still take."""
        if self.given is not None:
            choice_T = self.given[..., layer].to(self.left_T.device)
        else:
            wish_TL = logits()
            wish_TL = wish_TL.roll(1, -2) if self.duo.fault == "shifted" else wish_TL
            wish_TL = -wish_TL if self.duo.fault == "reversed" else wish_TL
            choice_T, self.left_T = routed(wish_TL, self.left_T, self.layers - layer)
        if self.duo.fault == "swapped" and layer == self.layers - 1:
            choice_T = torch.tensor([NONE, BIG, SMALL])[choice_T]
        self.taken.append(choice_T)
        return choice_T


def routed(logits_TL: Tensor, left_T: Tensor, layers: int) -> tuple[Tensor, Tensor]:
    """The router's choice and how many big ones are left after it, with so many layers to go, this
    one among them: every token takes exactly as many as it may."""
    at_T1 = (left_T - 1).clamp(min=0)[..., None].expand(*logits_TL.shape[:-1], 1)
    wish_T = logits_TL.gather(-1, at_T1)[..., 0] > 0
    big_T = (wish_T & (left_T > 0)) | (left_T >= layers)
    return torch.where(big_T, BIG, SMALL), left_T - big_T.long()


@cache
def table(routes: tuple[str, ...]) -> Tensor:
    """Routes as numbers, int64 [P, L]."""
    return torch.tensor([[LETTERS.index(letter) for letter in route] for route in routes])


def counts(taken: list[Tensor]) -> list[list[int]]:
    """Of each layer how many tokens took none, the small and the big module."""
    return [choice.flatten().bincount(minlength=len(LETTERS)).tolist() for choice in taken]


def alone(weights: dict[str, Tensor], which: int) -> dict[str, Tensor]:
    """Weights of the plain transformer whose feed-forwards are all the small or all the big ones,
    under a plain model's names."""
    found = {}
    for name, tensor in weights.items():
        if ".mlp.router." in name or (which == SMALL and ".mlp." in name):
            continue
        if ".small_mlp." in name:
            if which == SMALL:
                found[name.replace(".small_mlp.", ".mlp.")] = tensor
            continue
        found[name] = tensor
    return found
