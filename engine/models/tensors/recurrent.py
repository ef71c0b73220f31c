"""Parameters of recurrent layers, the gated delta rule and Mamba-2, as checkpoints name them."""

from engine.kernels.recurrent.sizes import Delta, Mamba
from engine.models.tensors.parameter import Parameter, linear, one, whole


def recurrent_parameters(part: Delta | Mamba, root: str, hidden: int) -> list[Parameter]:
    """A recurrent layer's tensors; `root` is the layer's name."""
    if isinstance(part, Mamba):
        return _mamba(part, f"{root}.mixer", hidden)
    return _delta(part, f"{root}.linear_attn", hidden)


def _delta(part: Delta, root: str, hidden: int) -> list[Parameter]:
    """The gated delta rule: projections, convolution, decay, norm of heads."""
    heads, values = part.value_heads, part.width
    if part.by_head:
        found = [one(f"{root}.in_proj_qkvz.weight", "delta", part.channels + values, hidden)]
        found += [one(f"{root}.in_proj_ba.weight", "rates", 2 * heads, hidden)]
    else:
        found = [one(f"{root}.in_proj_qkv.weight", "delta", part.channels, hidden)]
        found += [one(f"{root}.in_proj_z.weight", "delta_gate", values, hidden)]
        found += [one(f"{root}.in_proj_b.weight", "rates", heads, hidden)]
        found += [one(f"{root}.in_proj_a.weight", "rates_decay", heads, hidden)]
    found += [one(f"{root}.conv1d.weight", "convolution", part.channels, 1, part.kernel)]
    found += [whole(f"{root}.dt_bias", "step_bias", heads), whole(f"{root}.A_log", "decay", heads)]
    found += [whole(f"{root}.norm.weight", "delta_norm", part.value)]
    return [*found, one(f"{root}.out_proj.weight", "out", hidden, values)]


def _mamba(part: Mamba, root: str, hidden: int) -> list[Parameter]:
    """Mamba-2: one projection for all that goes in, convolution, decay, skip, norm of groups."""
    into = part.width + part.channels + part.heads
    found = linear(f"{root}.in_proj", "mamba", into, hidden, part.bias)
    found += [one(f"{root}.conv1d.weight", "convolution", part.channels, 1, part.kernel)]
    if part.kernel_bias:
        found += [one(f"{root}.conv1d.bias", "convolution.bias", part.channels)]
    found += [whole(f"{root}.dt_bias", "step_bias", part.heads)]
    found += [whole(f"{root}.A_log", "decay", part.heads), whole(f"{root}.D", "skip", part.heads)]
    found += [whole(f"{root}.norm.weight", "mamba_norm", part.width)]
    return found + linear(f"{root}.out_proj", "out", hidden, part.width, part.bias)
