"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) over the cached latent.

The up-projections are absorbed: queries go to the latent's space instead of latents to key and
value heads, so attention reads one shared "head" of rank + rope numbers per token.
Shape letters: T new tokens, C hidden, H heads, N nope size, R latent rank, Q rope size, V value
size, I inputs, O outputs of a head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.token_index import attend_to_best
from engine.models.attention import Pass
from engine.models.config import ModelConfig
from engine.models.gathered import Gathered
from engine.models.layers import LATENT_NORM_EPS
from engine.models.ops import Ops


class PerHead:
    """A product of each head's own: y_THO of x_THI by weight_HOI.

    Where activations are wide, a head at a time by the operations' linear, so that a token's bits
    are the same in any batch; torch's product of all heads at once sums by the size of the batch.
    """

    def __init__(self, weight_HOI: Tensor, ops: Ops) -> None:
        self.weight_HOI = None if ops.wide else weight_HOI
        self.heads = [ops.linear(weight_OI, None) for weight_OI in weight_HOI] if ops.wide else []

    def __call__(self, x_THI: Tensor) -> Tensor:
        """y_THO."""
        if self.weight_HOI is not None:
            return torch.einsum("thi,hoi->tho", x_THI, self.weight_HOI)
        pairs = zip(self.heads, x_THI.unbind(1), strict=True)
        return torch.stack([linear(x_TI) for linear, x_TI in pairs], dim=1)


class LatentAttention:
    """One layer's latent attention: caches the normalised latent and the rotated shared key."""

    def __init__(self, config: ModelConfig, layer: int, weights: Gathered) -> None:
        part = config.latent
        assert part is not None and config.rotary is not None
        self.ops = weights.ops
        self.part = part
        self.heads = config.heads
        first = "query_down" if part.query_rank else "query"
        self.down = weights.linear(first, "latent_down")
        self.query_norm = weights.take("query_norm") if part.query_rank else None
        self.query_up = weights.linear("query") if part.query_rank else None
        self.latent_norm = weights.take("latent_norm")
        up_HXR = weights.take("latent_up").unflatten(0, (config.heads, part.nope + part.value))
        key_up_HNR, value_up_HVR = up_HXR.split([part.nope, part.value], dim=1)
        self.key_up = PerHead(key_up_HNR.transpose(1, 2), weights.ops)
        self.value_up = PerHead(value_up_HVR, weights.ops)
        self.out = weights.linear("out")
        self.interleaved = config.rotary.interleaved
        self.scale = config.scale(layer)
        self.index = TokenIndex(config, weights) if config.index is not None else None

    def __call__(self, x_TC: Tensor, here: Pass, cache: dict[str, Tensor]) -> Tensor:
        """y_TC for normalised x_TC."""
        part, turn = self.part, here.turns["main"]
        down = self.down(x_TC)
        query, latent_TR, k_TQ = down.split(
            [down.shape[1] - part.rank - part.rope, part.rank, part.rope], dim=1
        )
        if self.query_up is not None and self.query_norm is not None:
            short = self.ops.rms_norm(query, self.query_norm, LATENT_NORM_EPS)
            query = self.query_up(short)
            if self.index is not None:
                self.index.write(x_TC, here, cache)
        q_THX = query.unflatten(1, (self.heads, -1))
        q_THN, q_THQ = q_THX.split([part.nope, part.rope], dim=-1)
        self._write(latent_TR, self.ops.rotate(k_TQ[:, None], *turn, self.interleaved), here, cache)
        q_THR = self.key_up(q_THN)
        # The latent is key and value at once; what attention makes of the rope part is dropped.
        q_THX = torch.cat([q_THR, self.ops.rotate(q_THQ, *turn, self.interleaved)], dim=-1)
        batch = here.batch
        # Which of the two ways it goes must not hang on who else is there.
        chooses = here.exact or (
            self.index is not None and int(batch.context_B.max()) > self.index.part.kept
        )
        if self.index is not None and chooses:
            o_THX = self.index.attend(x_TC, short, q_THX, here, cache, self.scale)
        else:
            o_THX = self.ops.paged_attention(
                q_THX,
                here.pages(cache["latent"]),
                here.pages(cache["latent"]),
                batch.block_table_BP,
                batch.query_start_B1,
                batch.context_B,
                scale=self.scale,
            )
        o_THV = self.value_up(o_THX[..., : part.rank])
        return self.out(o_THV.flatten(1))

    def _write(
        self, latent_TR: Tensor, k_T1Q: Tensor, here: Pass, cache: dict[str, Tensor]
    ) -> None:
        latent_TR = self.ops.rms_norm(latent_TR, self.latent_norm, LATENT_NORM_EPS)
        entry_T1X = torch.cat([latent_TR[:, None], k_T1Q], dim=-1)
        pages_PS1X = cache["latent"]
        pages_PS1X.flatten(0, 1)[here.slots_T] = entry_T1X.to(pages_PS1X.dtype)


class TokenIndex:
    """One layer's index of tokens, which caches a key of its own for each."""

    def __init__(self, config: ModelConfig, weights: Gathered) -> None:
        assert config.index is not None and config.latent is not None
        self.part, self.rope = config.index, config.latent.rope
        self.query = weights.linear("index_query")
        self.key = weights.linear("index_key")
        self.weight = weights.linear("index_weight")
        self.norm = weights.take("index_norm"), weights.take("index_norm.bias")
        self.rotate = weights.ops.rotate

    def write(self, x_TC: Tensor, here: Pass, cache: dict[str, Tensor]) -> None:
        """Cache the new tokens' keys."""
        k_TD = self.key(x_TC)
        weight_D, bias_D = (each.to(k_TD.dtype) for each in self.norm)
        k_TD = F.layer_norm(k_TD, weight_D.shape, weight_D, bias_D, LATENT_NORM_EPS)
        pages_PS1D = cache["index"]
        pages_PS1D.flatten(0, 1)[here.slots_T] = self._turned(k_TD[:, None], here).to(
            pages_PS1D.dtype
        )

    def attend(
        self, x_TC: Tensor, short_TR: Tensor, q_THX: Tensor, here: Pass,
        cache: dict[str, Tensor], scale: float,
    ) -> Tensor:  # fmt: skip
        """o_THX of attention to the tokens that each new one keeps; `short_TR`: its query before
        it goes to the heads."""
        batch = here.batch
        q_THD = self._turned(self.query(short_TR).unflatten(1, (self.part.heads, -1)), here)
        index = q_THD, self.weight(x_TC), here.pages(cache["index"])
        rows = batch.query_start_B1, batch.context_B, batch.block_table_BP
        latents = here.pages(cache["latent"])
        return attend_to_best(q_THX, latents, index, rows, scale, self.part.kept, here.exact)

    def _turned(self, x_THD: Tensor, here: Pass) -> Tensor:
        """The first numbers of a head are rotated, the rest is not."""
        first, rest = x_THD.split([self.rope, self.part.size - self.rope], dim=-1)
        turn = here.turns["main"]
        return torch.cat([self.rotate(first.contiguous(), *turn, self.part.interleaved), rest], -1)
