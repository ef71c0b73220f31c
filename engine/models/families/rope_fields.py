"""The rotary part of a `config.json`, in its older (`rope_scaling`) and newer spelling."""

import math
from dataclasses import replace

from engine.models.config import Rotary
from engine.models.families.fields import Fields

KINDS = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")
ENDS = {"low": 1.0, "high": 4.0}  # of llama3's ramp
OLDER = {"su": "longrope"}  # as Phi-3's first checkpoints have it


def read_rotary(
    fields: Fields,
    dim: int,
    interleaved: bool = False,
    theta: float = 10_000.0,
    *,
    layers: str = "",
    part: float = 0.0,
) -> Rotary:
    """Rotary settings for heads with `dim` rotated dimensions; `theta` is the family's default.

    `layers`: whose settings, where a config has them by kind of layer. `part`: of `dim` that a
    family rotates where nothing else is said; 0 where it rotates all.
    """
    scaling = fields.inner("rope_parameters") or fields.inner("rope_scaling")
    if scaling is not None and layers:
        scaling = scaling.inner(layers) or scaling
    theta = fields.number("rope_theta", theta, low=1e-3)
    told = fields.number("partial_rotary_factor", part or 1.0)
    if scaling is not None:
        theta = scaling.number("rope_theta", theta, low=1e-3)
        told = scaling.number("partial_rotary_factor", told)
    if not part and told != 1.0:
        raise fields.bad("partial_rotary_factor", "must be 1 for this architecture")
    if not 0.0 < told <= 1.0:
        raise fields.bad("partial_rotary_factor", f"is {told:g}; it must lie above 0, up to 1")
    dim = int(dim * told)
    if scaling is None:
        return Rotary(dim, theta, interleaved)
    kind = scaling.text("rope_type", scaling.text("type", "default"))
    kind = OLDER.get(kind, kind)
    if kind not in KINDS:
        raise scaling.bad("rope_type", f"is {kind[:40]!r}; supported are {', '.join(KINDS)}")
    if kind == "default":
        return Rotary(dim, theta, interleaved)
    if kind == "yarn" and theta <= 1.0:  # all waves are of one length: none is slow
        raise scaling.bad("rope_theta", f"is {theta:g}; yarn takes one above 1")
    if kind == "dynamic" and dim <= 2:
        raise scaling.bad("rope_type", "is 'dynamic', which takes heads of more than 2 dimensions")
    if kind == "longrope":
        return _longrope(fields, scaling, Rotary(dim, theta, interleaved, kind="longrope"))
    return _stretched(fields, scaling, Rotary(dim, theta, interleaved, kind=kind))  # type: ignore[arg-type]


def _stretched(fields: Fields, scaling: Fields, plain: Rotary) -> Rotary:
    positions = fields.count("max_position_embeddings", 2048)
    original = positions
    if plain.kind in ("llama3", "yarn"):
        original = scaling.count("original_max_position_embeddings", positions)
    ratio = positions / original if plain.kind == "yarn" else None
    low, high = (scaling.number(f"{end}_freq_factor", at, low=1e-6) for end, at in ENDS.items())
    if plain.kind == "llama3" and not low < high:
        raise scaling.bad("high_freq_factor", f"is {high:g}; it must be above low_freq_factor")
    factor = scaling.number("factor", ratio, low=1e-6)
    return Rotary(
        dim=plain.dim,
        theta=plain.theta,
        interleaved=plain.interleaved,
        kind=plain.kind,
        factor=factor,
        original_positions=original,
        low_frequency_factor=low,
        high_frequency_factor=high,
        beta_fast=scaling.number("beta_fast", 32.0, low=1e-6),
        beta_slow=scaling.number("beta_slow", 1.0, low=1e-6),
        truncate=scaling.flag("truncate", True),
        magnitude=_magnitude(scaling, factor) if plain.kind == "yarn" else 1.0,
    )


def _longrope(fields: Fields, scaling: Fields, plain: Rotary) -> Rotary:
    """Each pair slowed by the long factors where the model's positions go beyond those of its
    pretraining, else by the short ones.

    One choice for all requests, as vLLM has it: a cached key must not depend on how long the
    sequence was that computed it. (transformers chooses anew for each call.)
    """
    positions = fields.count("max_position_embeddings", 2048)
    original = fields.count("original_max_position_embeddings", positions)
    original = scaling.count("original_max_position_embeddings", original)
    both = {name: scaling.numbers(name, plain.dim // 2) for name in ("short_factor", "long_factor")}
    factor = scaling.number("factor", positions / original, low=1e-6)
    magnitude = 1.0
    if factor > 1 and original > 1:
        magnitude = math.sqrt(1 + math.log(factor) / math.log(original))
    return replace(
        plain,
        factor=factor,
        original_positions=original,
        magnitude=scaling.number("attention_factor", magnitude),
        slower=both["long_factor" if positions > original else "short_factor"],
    )


def _magnitude(scaling: Fields, factor: float) -> float:
    """Yarn's factor on cosine and sine: given, or from DeepSeek's two scales, or the paper's."""
    if scaling.has("attention_factor"):
        return scaling.number("attention_factor")
    scale, all_dim = scaling.number("mscale", 0.0), scaling.number("mscale_all_dim", 0.0)
    if scale and all_dim:
        return yarn_magnitude(factor, scale) / yarn_magnitude(factor, all_dim)
    return yarn_magnitude(factor)


def yarn_magnitude(factor: float, scale: float = 1.0) -> float:
    """0.1 · scale · ln(factor) + 1 (arXiv 2309.00071, equation 22)."""
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0
