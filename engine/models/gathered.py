"""Weights laid out for speed while the Hugging Face names stay views of the same memory."""

from collections.abc import Mapping

import torch
from torch import Tensor

from engine.models.linear import Linear
from engine.models.parameters import Parameter


class Gathered:
    """Takes a checkpoint's tensors by role, several roles stacked into one where asked.

    `named` receives each tensor under its Hugging Face name, as a view of what was stacked: the
    model holds every weight once. `source` may read lazily; each tensor is asked for once, copied
    and let go.
    """

    def __init__(
        self,
        parameters: list[Parameter],
        source: Mapping[str, Tensor],
        named: dict[str, Tensor],
        dtype: torch.dtype,
    ) -> None:
        self.by_role = {p.roles[0][0]: p for p in parameters}
        self.source = source
        self.named = named
        self.dtype = dtype

    def __contains__(self, role: str) -> bool:
        return role in self.by_role

    @torch.no_grad()
    def take(self, *roles: str) -> Tensor:
        """The roles' rows stacked: [rows, in] (or [rows]); a role inside another's is skipped."""
        parameters = [self.by_role[role] for role in roles if role in self.by_role]
        rows = [sum(count for _, count in p.roles) for p in parameters]
        first = parameters[0]
        inner = (first.shape[0],) if first.transposed else first.shape[1:]
        stacked = torch.empty(sum(rows), *inner, dtype=self.dtype)
        for parameter, part in zip(parameters, stacked.split(rows), strict=True):
            view = part.T if parameter.transposed else part
            view.copy_(self.source[parameter.name])
            self.named[parameter.name] = view
        return stacked

    def linear(self, *roles: str) -> Linear:
        """A projection to the roles' outputs side by side, with biases where they have them.

        Where only some of the roles have a bias the others' is zero.
        """
        weight_NK = self.take(*roles)
        if not any(f"{role}.bias" in self for role in roles):
            return Linear(weight_NK)
        if all(f"{role}.bias" in self for role in roles if role in self):
            return Linear(weight_NK, self.take(*(f"{role}.bias" for role in roles)))
        parts = []
        for role in roles:
            rows = sum(count for _, count in self.by_role[role].roles)
            known = f"{role}.bias" in self
            none = torch.zeros(rows, dtype=self.dtype)
            parts.append(self.take(f"{role}.bias") if known else none)
        return Linear(weight_NK, torch.cat(parts))
