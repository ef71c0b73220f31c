"""Pipeline stage: a run of consecutive layers with its weights, as a function of a tensor.

`language_stages` cuts the engine's dense forward into them; any chain of torch modules will do as
well (`module_stage`). Shape letters: B sequences, T tokens, C hidden.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from engine.core.errors import BadInput
from engine.distributed.transport import Shape
from engine.models.config import ModelConfig
from engine.models.parameters import layer_parameters, outer_parameters
from engine.models.reference import blocks, embed, head

Compute = Callable[[Tensor], Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Stage:
    """`forward`: what the stage takes to what it gives, in the weights of `parameters`.

    `takes` and `gives`: what arrives from the stage before and leaves for the one behind. The first
    stage makes what it takes of the microbatch by `begin`, whose weights are among `parameters`
    too; the last one ends in `loss(made, target)`, a number. `flops`: of a microbatch's forward.
    """

    parameters: Mapping[str, Tensor]
    forward: Compute
    takes: Shape
    gives: Shape
    begin: Compute | None = None
    loss: Loss | None = None
    flops: float = 0.0


def language_stages(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    stages: int,
    rows: int,
    length: int,
    wanted: Callable[[int], bool] = lambda stage: True,
) -> dict[int, Stage]:
    """The `wanted` of `stages` stages of a language model for microbatches [rows, length].

    Only the weights of those stages are asked for; they become leaves that want gradients. Layers
    are dealt evenly, the first stages taking one more where they do not divide; the last stage's
    loss is the mean over tokens of the cross-entropy. Raises BadInput for more stages than layers,
    and for a tied head on another stage than its embedding.
    """
    if not 1 <= stages <= config.layers:
        raise BadInput(f"{stages} stages: the model has {config.layers} layers, one a stage")
    if config.tied and stages > 1:
        raise BadInput(
            "pipeline stages: the model's head is its embedding, which would lie on two stages; "
            "take a model with a head of its own"
        )
    return {
        stage: _language_stage(config, weights, stage, stages, Shape((rows, length, config.hidden)))
        for stage in range(stages)
        if wanted(stage)
    }


def _language_stage(
    config: ModelConfig, weights: Mapping[str, Tensor], stage: int, stages: int, takes: Shape
) -> Stage:
    layers = dealt(config.layers, stages)[stage]
    first, last = stage == 0, stage == stages - 1
    names = [p.name for layer in layers for p in layer_parameters(config, layer)]
    ends = _ends(config)
    names = ends[0] * first + names + [n for n in ends[1] if not (first and n in ends[0])] * last
    own = {name: weights[name].detach().clone().requires_grad_() for name in names}

    def forward(x_BTC: Tensor) -> Tensor:
        y_BTC = blocks(config, own, x_BTC, layers)
        return head(config, own, y_BTC) if last else y_BTC

    tokens = takes.sizes[0] * takes.sizes[1]
    matrices = sum(own[n].numel() for n in names if own[n].ndim > 1 and n not in ends[0] * first)
    scores = 2 * config.heads * config.head_dim * takes.sizes[1] * len(layers)
    return Stage(
        own,
        forward,
        takes,
        takes,
        (lambda tokens_BT: embed(config, own, tokens_BT)) if first else None,
        cross_entropy if last else None,
        2.0 * tokens * (matrices + scores),
    )


def _ends(config: ModelConfig) -> tuple[list[str], list[str]]:
    """Names of the weights outside the layers: before the first, after the last."""
    at_start = ("embedding", "positions")
    found: tuple[list[str], list[str]] = ([], [])
    for parameter in outer_parameters(config):
        role = parameter.roles[0][0]
        found[role not in at_start].append(parameter.name)
        if role == "embedding" and config.tied:
            found[1].append(parameter.name)
    return found


def dealt(layers: int, stages: int) -> list[range]:
    """Layers of each stage, the first stages taking one more where they do not divide."""
    each, more = divmod(layers, stages)
    edges = [stage * each + min(stage, more) for stage in range(stages + 1)]
    return [range(*pair) for pair in zip(edges[:-1], edges[1:], strict=True)]


def cross_entropy(logits_BTV: Tensor, target_BT: Tensor) -> Tensor:
    """Mean over tokens, nats."""
    return nn.functional.cross_entropy(logits_BTV.float().flatten(0, 1), target_BT.flatten())


def module_stage(module: nn.Module, takes: Shape, gives: Shape, loss: Loss | None = None) -> Stage:
    """Any module as a stage; the first one takes the microbatch as it is, floats."""
    return Stage(dict(module.named_parameters()), module, takes, gives, loss=loss)
