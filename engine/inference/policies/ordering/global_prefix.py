"""Global prefix sharing: the whole job's common prefixes, group by group, decode-heavy ones first.

BatchLLM (arXiv 2412.03594): prefixes are identified over all prompts before
the start, requests of one prefix are scheduled together so that its cache lives as short as it can,
and groups with more decoding for their prompt tokens go first, so that their decodes mix with the
prompt chunks of those that follow.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.policies.policy import Ordering, Ranking, View
from engine.inference.policies.prefix_groups import Group, groups
from engine.inference.requests.request import Request


class GlobalPrefix(Ordering):
    """The planned order; requests that no plan knows come after it, by arrival."""

    kind: Literal["global_prefix"] = "global_prefix"
    decode_heavy_first: bool = knob(True, "Groups with more decoding for their prompt go first")
    fault: Literal["none", "wrong_key", "dealt_out", "light_first"] = knob(
        "none", "What goes wrong in the plan: the tree is built from how prompts end, each group's "
        "members are dealt out over the whole job, or groups with the least decoding go first",
        group="faults",
    )  # fmt: skip

    def prepare(self, requests: Sequence[Request], page_size: int) -> Ranking:
        prompts = [request.prompt for request in requests]
        planned = groups(prompts, page_size, by_ends=self.fault == "wrong_key")
        if self.decode_heavy_first:
            ahead = 1 if self.fault == "light_first" else -1
            planned.sort(key=lambda group: ahead * _decode_ratio(group, requests))
        ranking = Ranking(*np.zeros((3, len(requests)), np.int64))
        places = [
            (number, place, member)
            for number, group in enumerate(planned)
            for place, member in enumerate(group.members)
        ]
        if self.fault == "dealt_out":
            places.sort(key=lambda one: (one[1], one[0]))  # first members of all, then second ones
        for rank, (number, _, member) in enumerate(places):
            shared = planned[number].shared
            ranking.rank_N[member], ranking.shared_N[member] = rank, shared
            ranking.group_N[member] = number if shared else -1
        return ranking

    def key(self, request: Request, view: View) -> tuple[float, ...]:
        return (request.rank,)


def _decode_ratio(group: Group, requests: Sequence[Request]) -> float:
    """Tokens to generate for each prompt token to compute, the shared prefix counted once."""
    members = [requests[member] for member in group.members]
    decode = sum(request.sampling.max_tokens for request in members)
    prompt = sum(len(request.prompt) - group.shared for request in members) + group.shared
    return decode / max(prompt, 1)
