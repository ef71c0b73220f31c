"""Device mesh: data × pipeline × context × tensor ranks, in that order, neighbours last.

The shape is plain arithmetic; `Mesh` makes a group for each set of ranks that talk. An axis is the
ranks that differ from this one in some directions of the mesh only.
"""

from collections.abc import Sequence

import numpy as np

from engine.core.config import Config, from_dict, knob
from engine.core.errors import BadInput
from engine.distributed.axis import Axis
from engine.distributed.rank import Rank

DIRECTIONS = ("data", "pipeline", "context", "tensor")
LETTERS = {"data": "dp", "pipeline": "pp", "context": "cp", "tensor": "tp"}


class MeshShape(Config):
    """How many ranks in each direction; rank numbers run fastest along `tensor`."""

    data: int = knob(1, "replicas, each with its own sequences (dp)", low=1, high=4096)
    pipeline: int = knob(1, "stages of the layers (pp)", low=1, high=256)
    context: int = knob(1, "ranks that share a sequence (cp)", low=1, high=256)
    tensor: int = knob(1, "ranks that share each matrix (tp)", low=1, high=256)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in DIRECTIONS)

    @property
    def ranks(self) -> int:
        return int(np.prod(self.sizes))

    def place(self, rank: int) -> dict[str, int]:
        """Where a rank stands in each direction."""
        where = np.unravel_index(rank, self.sizes)
        return {name: int(at) for name, at in zip(DIRECTIONS, where, strict=True)}

    def members(self, rank: int, directions: Sequence[str]) -> list[int]:
        """The ranks that differ from `rank` in those directions at most, ascending."""
        grid = np.arange(self.ranks).reshape(self.sizes)
        place = self.place(rank)
        at = tuple(slice(None) if name in directions else place[name] for name in DIRECTIONS)
        return [int(member) for member in grid[at].reshape(-1)]

    def __str__(self) -> str:
        return " × ".join(f"{LETTERS[name]}{getattr(self, name)}" for name in DIRECTIONS)


def fitted(ranks: int, *, pipeline: int = 1, context: int = 1, tensor: int = 1) -> MeshShape:
    """The mesh that gives all other ranks to data. Raises BadInput where they do not divide."""
    each = pipeline * context * tensor
    if ranks % each:
        enough = [count for count in (ranks // each * each, (ranks // each + 1) * each) if count]
        raise BadInput(
            f"mesh pp{pipeline} × cp{context} × tp{tensor}: {each} ranks do not divide {ranks}; "
            f"start {' or '.join(map(str, enough))}, or change it"
        )
    sizes = {"data": ranks // each, "pipeline": pipeline, "context": context, "tensor": tensor}
    return from_dict(MeshShape, sizes)


class Mesh:
    """One rank's end of a mesh. Raises BadInput where the ranks are not as many as it has places.

    All ranks ask for their axes in the same order.
    """

    def __init__(self, rank: Rank, shape: MeshShape) -> None:
        if shape.ranks != rank.ranks:
            raise BadInput(
                f"mesh {shape}: has {shape.ranks} places for {rank.ranks} ranks; "
                "change a size, or start as many"
            )
        self.rank, self.shape = rank, shape
        self.place = shape.place(rank.rank)
        self._axes: dict[tuple[str, ...], Axis] = {}

    def axis(self, *directions: str) -> Axis:
        """The axis along these directions, in the mesh's order; made at the first call."""
        names = tuple(name for name in DIRECTIONS if name in directions)
        if names not in self._axes:
            members = self.shape.members(self.rank.rank, names)
            self._axes[names] = Axis(self.rank, "+".join(LETTERS[n] for n in names), members)
        return self._axes[names]
