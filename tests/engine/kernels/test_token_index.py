"""An index keeps the same tokens however many stand hidden behind a query, equals among them."""

import torch

from engine.kernels.token_index import best


def test_what_is_kept_hangs_on_what_is_seen_alone():
    draw = torch.Generator().manual_seed(0)
    score_1TS = torch.randint(0, 4, (1, 40, 40), generator=draw).float()  # many are equal
    hidden_TS = torch.ones(40, 40, dtype=torch.bool).triu(1)
    for kept in (1, 5, 16, 64):
        together_TK, seen_TK = (x[0] for x in best(score_1TS, hidden_TS[None], kept))
        for t in range(40):
            own = score_1TS[:, t : t + 1, : t + 1]
            alone_K, there_K = (x[0, 0] for x in best(own, torch.zeros_like(own).bool(), kept))
            assert there_K.all() and len(alone_K) == min(kept, t + 1)
            assert together_TK[t][seen_TK[t]].tolist() == alone_K.tolist()
            ranked = sorted(range(t + 1), key=lambda s: (-float(own[0, 0, s]), s))
            assert sorted(ranked[:kept]) == alone_K.tolist()


def test_a_score_that_is_no_number_is_kept_last():
    score_1TS = torch.tensor([[[float("nan"), 1.0, float("nan"), 0.0]]])
    index, seen = best(score_1TS, torch.zeros(1, 1, 4, dtype=torch.bool), 3)
    assert index[seen].tolist() == [1, 3]
