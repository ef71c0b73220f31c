"""Parameter: a tensor of a checkpoint, its shape, and the roles it plays for the transformer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor of the checkpoint. `roles` share its output rows, in order, where several do.

    `transposed`: stored as [in, out] (GPT-2), so its roles are rows of the transpose. `whole`: a
    vector that a norm's offset is not added to.
    """

    name: str
    shape: tuple[int, ...]
    roles: tuple[tuple[str, int], ...]
    transposed: bool = False
    whole: bool = False


def one(name: str, role: str, *shape: int) -> Parameter:
    """A parameter that plays one role."""
    return Parameter(name, shape, ((role, shape[0]),))


def linear(name: str, role: str, out: int, into: int, bias: bool) -> list[Parameter]:
    """A projection, with its bias where it has one."""
    found = [one(f"{name}.weight", role, out, into)]
    return found + [one(f"{name}.bias", f"{role}.bias", out)] if bias else found


def whole(name: str, role: str, size: int) -> Parameter:
    """A vector that a norm's offset is not added to."""
    return Parameter(name, (size,), ((role, size),), whole=True)
