"""Gathered weights: a checkpoint's tensors by role, stacked and prepared for their operations."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from engine.kernels.quantised.weight import Quantised
from engine.models.ops import Linear, Ops
from engine.models.tensors.parameter import Parameter


class Cast(Mapping[str, Tensor]):
    """A mapping's tensors in another type, each its own copy, made when asked for."""

    def __init__(self, source: Mapping[str, Tensor], dtype: torch.dtype) -> None:
        self.source = source
        self.dtype = dtype

    def __getitem__(self, name: str) -> Tensor:
        return self.source[name].detach().to(self.dtype, copy=True)

    def __iter__(self) -> Iterator[str]:
        return iter(self.source)

    def __len__(self) -> int:
        return len(self.source)


class Gathered:
    """Tensors of one layer (or the outer ones), each read once, copied to `dtype` and let go."""

    def __init__(
        self,
        parameters: list[Parameter],
        source: Mapping[str, Tensor],
        ops: Ops,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        self.by_role = {p.roles[0][0]: p for p in parameters}
        self.source = source
        self.ops = ops
        self.dtype = dtype
        self.device = device

    def __contains__(self, role: str) -> bool:
        return role in self.by_role

    @torch.no_grad()
    def take(self, *roles: str) -> Tensor:
        """The roles' rows stacked, [rows, in] or [rows]; a role inside another's is skipped."""
        parameters = [self.by_role[role] for role in roles if role in self.by_role]
        rows = [sum(count for _, count in p.roles) for p in parameters]
        first = parameters[0]
        inner = (first.shape[0],) if first.transposed else first.shape[1:]
        stacked = torch.empty(sum(rows), *inner, dtype=self.dtype, device=self.device)
        for parameter, part in zip(parameters, stacked.split(rows), strict=True):
            view = part.T if parameter.transposed else part
            view.copy_(self.source[parameter.name])
        return stacked

    def linear(self, *roles: str) -> Linear:
        """A projection to the roles' outputs side by side; a missing bias beside others is zero."""
        in_codes = self._codes(roles)
        if in_codes and self.ops.codes is not None:
            return self.ops.codes(in_codes, self._bias(roles))
        return self.ops.linear(self.take(*roles), self._bias(roles))

    def _codes(self, roles: tuple[str, ...]) -> list[Quantised]:
        """The roles' weights in codes; none where one of them is not, or the operations are not
        those that take them."""
        read = getattr(self.source, "codes", None)
        parameters = [self.by_role[role] for role in roles if role in self.by_role]
        if read is None or self.ops.codes is None or any(p.transposed for p in parameters):
            return []
        found = [read(p.name) for p in parameters]
        return [] if any(each is None for each in found) else found

    def _bias(self, roles: tuple[str, ...]) -> Tensor | None:
        held = [role for role in roles if role in self]
        if not any(f"{role}.bias" in self for role in held):
            return None
        parts = []
        for role in held:
            rows = sum(count for _, count in self.by_role[role].roles)
            none = torch.zeros(rows, dtype=self.dtype, device=self.device)
            parts.append(self.take(f"{role}.bias") if f"{role}.bias" in self else none)
        return torch.cat(parts)
