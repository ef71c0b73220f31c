"""ShardModule: a module's weights on one tensor-parallel rank, each cut to the rank's shard, by
role and by name."""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.layers import norm
from engine.models.parameters import Parameter, roles
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.tensor.shards import cut, part_of
from engine.training.shard_rules.plan import Plan


class ShardModule(nn.Module):
    """Parameters of the rank, cut by `plan` from whole weights under their Hugging Face names.

    `had`: parameters that another module of this rank has already, which is shared with it.
    """

    def __init__(
        self, parameters: Sequence[Parameter], weights: Mapping[str, Tensor],
        parallel: Parallelism, plan: Plan, had: Mapping[str, nn.Parameter] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.parallel, axis, had = parallel, parallel.tensor, had or {}
        self.of = [part_of(each, plan[each.name], axis.size) for each in parameters]
        for whole in parameters:
            name = whole.name
            if name in had:
                made = had[name]
            else:
                own = cut(whole, weights[name], plan[name], axis.at, axis.size)
                made = nn.Parameter(own.to(parallel.device))
            self.register_parameter(_field(whole), made)

    def by_role(self) -> dict[str, Tensor]:
        """The rank's parts by role, each as [out, in]."""
        return roles(self.of, self.named())

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
