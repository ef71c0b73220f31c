"""ShardModule: a module's weights on a tensor-parallel rank, each cut to the rank's shard, by role
and by name.

What a module of several matrices computes is the sum of its ranks' parts: `joined` makes it, of one
rank and its peers or of ranks that take turns, as the plan says.
"""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.layers import norm
from engine.models.parameters import roles
from engine.models.tensors.parameter import Parameter
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.tensor.layers import with_bias
from engine.training.parallel.tensor.shards import cut, part_of
from engine.training.shard_rules.plan import Plan, cut_roles

Roles = Mapping[str, Tensor]


class ShardModule(nn.Module):
    """Parameters of the rank, cut by `plan` from whole weights under their Hugging Face names.

    `had`: parameters that another module of this rank has already, which is shared with it. Ranks
    that take turns hold views of the whole weights, `groups` key/value heads among them.
    """

    def __init__(
        self, parameters: Sequence[Parameter], weights: Mapping[str, Tensor],
        parallel: Parallelism, plan: Plan, groups: int = 1,
        had: Mapping[str, nn.Parameter] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.parallel, axis, had = parallel, parallel.tensor, had or {}
        self.splits = {role: plan[each.name] for each in parameters for role, _ in each.roles}
        self.views: list[dict[str, Tensor]] = [{} for _ in range(parallel.turns)]
        if parallel.turns:
            for rank, view in enumerate(self.views):
                for p in parameters:
                    whole = weights[p.name]
                    view |= cut_roles(p, whole, plan[p.name], rank, parallel.turns, groups)
            return
        self.of = [part_of(each, plan[each.name], axis.size) for each in parameters]
        for each in parameters:
            name = each.name
            if name in had:
                made = had[name]
            else:
                own = cut(each, weights[name], plan[name], axis.at, axis.size)
                made = nn.Parameter(own.to(parallel.device))
            self.register_parameter(_field(each), made)

    def by_role(self) -> dict[str, Tensor]:
        """The parts by role of the rank, or of the first that takes turns, each as [out, in]."""
        return self.views[0] if self.views else roles(self.of, self.named())

    def parts(self, role: str, name: str, part: Callable[[int, Roles], Tensor]) -> list[Tensor]:
        """What each rank here makes of its part of `role`; of a role that is whole one rank's.

        `part` is given a rank and its weights; `name` is what its phase is called.
        """
        made = []
        for rank, w in zip(self.parallel.here, self.views or [self.by_role()], strict=True):
            with self.parallel.phase(rank, name):
                made.append(part(rank, w))
            if self.splits[role] == "whole":
                break
        return made

    def joined(
        self, role: str, name: str, task: str, part: Callable[[int, Roles], Tensor],
        bias: str = "",
    ) -> Tensor:  # fmt: skip
        """The sum over tensor ranks of the parts of `role`, and once the bias of that name."""
        made = self.parts(role, name, part)
        y_BTC = self.parallel.out_of(sum(made[1:], made[0]), task)
        if f"{bias or role}.bias" not in self.splits:
            return y_BTC
        return with_bias(self.parallel, self.by_role(), bias or role, y_BTC, task)

    def named(self) -> dict[str, nn.Parameter]:
        """The rank's parts as they are stored, by Hugging Face name."""
        return {each.name: getattr(self, _field(each)) for each in self.of}

    def norm(self, config: ModelConfig, x_BTC: Tensor, role: str) -> Tensor:
        """The norm of that role; under sequence parallelism of a part of the tokens."""
        split, w = self.parallel.sequence_parallel, self.by_role()
        mine = {
            name: self.parallel.whole(w[name], split, name)
            for name in (role, f"{role}.bias")
            if name in w
        }
        return norm(config, x_BTC, mine, role)


def _field(parameter: Parameter) -> str:
    return parameter.roles[0][0].replace(".", "_") + "_part"
