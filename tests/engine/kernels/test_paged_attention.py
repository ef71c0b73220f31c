import numpy as np
import pytest
import torch
from numba import njit

from engine.kernels.paged_attention import paged_attention, work
from engine.kernels.paged_attention.reference import paged_attention as plain
from engine.kernels.paged_attention.tasks_cpu import split
from engine.kernels.stored import write


class Case:
    """Sequences in shuffled pages; every slot nobody filled holds NaN."""

    def __init__(self, heads, kv_heads, dim, news, contexts, *, size=16, values=None, half=False):
        draw = torch.Generator().manual_seed(0)
        values = values or dim
        longest = max(-(-context // size) for context in contexts)
        count = len(contexts) * longest + 3
        order = torch.randperm(count, generator=draw).tolist()
        self.k = torch.full((count, size, kv_heads, dim), float("nan"))
        self.v = torch.full((count, size, kv_heads, values), float("nan"))
        self.table = np.full((len(contexts), longest), -1, np.int32)
        for row, context in enumerate(contexts):
            for page in range(-(-context // size)):
                self.table[row, page] = number = order.pop()
                filled = min(size, context - page * size)
                self.k[number, :filled] = torch.randn(filled, kv_heads, dim, generator=draw)
                self.v[number, :filled] = torch.randn(filled, kv_heads, values, generator=draw)
        if half:
            self.k, self.v = self.k.bfloat16(), self.v.bfloat16()
        self.news, self.contexts = news, contexts
        self.start = np.concatenate([[0], np.cumsum(news)]).astype(np.int32)
        self.q = torch.randn(int(self.start[-1]), heads, dim, generator=draw)

    def all(self, kernel=paged_attention, **choices):
        tables = self.table, self.start, np.array(self.contexts, np.int32)
        if kernel is plain:
            tables = tuple(torch.from_numpy(array) for array in tables)
        return kernel(self.q, self.k, self.v, *tables, scale=0.25, **choices)

    def part(self, row, first, last, **choices):
        """New tokens first … last of one sequence, with nothing beside them."""
        at, new = int(self.start[row]), self.news[row]
        context = np.array([self.contexts[row] - new + last], np.int32)
        start = np.array([0, last - first], np.int32)
        table = self.table[row : row + 1]
        q = self.q[at + first : at + last]
        return paged_attention(q, self.k, self.v, table, start, context, scale=0.25, **choices)


CASES = [
    (Case(12, 4, 64, [1, 1], [300, 17]), {}),
    (Case(12, 4, 64, [5, 0, 1, 40], [300, 17, 600, 40]), {}),
    (Case(4, 4, 20, [3, 9], [30, 9], size=7, values=24), {}),
    (Case(8, 1, 8, [3, 9], [530, 9]), {}),
    (Case(64, 1, 16, [2, 1], [30, 40]), {}),
    (Case(32, 2, 16, [3, 9], [530, 9]), {"window": 100}),
    (Case(6, 2, 64, [30, 1], [530, 300], size=32), {"window": 7, "softcap": 5.0}),
]


@pytest.mark.parametrize("case,choices", CASES)
def test_attention_equals_torch(case, choices):
    torch.testing.assert_close(
        case.all(**choices), case.all(plain, **choices), rtol=1e-5, atol=2e-6
    )


@pytest.mark.parametrize("case,choices", CASES)
def test_a_token_has_the_same_bits_alone_in_a_batch_and_in_any_chunk(case, choices):
    together = case.all(**choices)
    for row, new in enumerate(case.news):
        expected = together[case.start[row] : case.start[row + 1]]
        for chunk in {1, 4, new} - {0}:
            for first in range(0, new, chunk):
                last = min(first + chunk, new)
                assert torch.equal(case.part(row, first, last, **choices), expected[first:last])


def test_attention_over_a_half_precision_cache():
    case = Case(6, 2, 64, [3, 1], [40, 270], values=80, half=True)
    torch.testing.assert_close(
        case.all(window=200), case.all(plain, window=200), rtol=1e-5, atol=2e-6
    )


def test_huge_scores_do_not_overflow():
    case = Case(4, 2, 16, [1], [50])
    case.q *= 1e4
    torch.testing.assert_close(case.all(), case.all(plain), rtol=1e-4, atol=1e-5)


def test_no_tokens_give_nothing():
    case = Case(4, 2, 16, [0], [5])
    assert case.all().shape == (0, 4, 16)


@pytest.mark.parametrize("threads", [1, 2, 64])
@pytest.mark.parametrize("news", [[1], [1] * 40, [0, 3, 0], [100, 1, 7]])
def test_every_row_and_head_is_in_one_task(news, threads):
    share, kv_heads = 3, 4
    start = np.concatenate([[0], np.cumsum(news)])
    found = split(start, share, kv_heads, threads)
    for row, new in enumerate(news):
        tasks = int(found.first[row + 1] - found.first[row])
        chunks = -(-new * share // 32)
        assert tasks == chunks * -(-kv_heads // int(found.heads[row]))
        assert min(new * share, 32) * int(found.heads[row]) <= 32 or found.heads[row] == 1


def test_work_counts_visible_pairs_by_hand():
    assert work.visible(3, 5) == 3 + 4 + 5
    assert work.visible(3, 5, window=4) == 3 + 4 + 4
    assert work.flops([1], [7], heads=2, dim=3) == 4 * 7 * 2 * 3
    assert work.bytes([1], [7], 2, 1, 3) == 2 * 7 * 3 * 4 + 2 * 2 * 3 * 4


@pytest.mark.slow  # nine seconds to compile; a fused step reads such a cache each time
def test_a_cache_in_e4m3_is_read_as_the_numbers_it_holds():
    case = Case(4, 2, 40, [1, 5], [300, 21], values=24)
    case.k, case.v = case.k.to(torch.float8_e4m3fn), case.v.to(torch.float8_e4m3fn)
    sinks = torch.tensor([0.3, -2.0, 4.0, 0.0])
    for window in (0, 9):
        found = case.all(window=window)
        wide = Case(4, 2, 40, [1, 5], [300, 21], values=24)
        wide.k, wide.v = case.k.float(), case.v.float()
        torch.testing.assert_close(found, wide.all(plain, window=window), rtol=1e-5, atol=1e-6)
        with_sinks = wide.all(window=window, sinks_H=sinks)
        torch.testing.assert_close(case.all(window=window, sinks_H=sinks), with_sinks)


def test_numbers_are_written_to_e4m3_as_torch_rounds_them():
    draw = torch.Generator().manual_seed(0)
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    every = every[every.isfinite()].sort().values
    ties, spread = (every[1:] + every[:-1]) / 2, torch.randn(3000, generator=draw).exp() / 50
    x = torch.cat([every, ties, ties * 1.0001, spread, -spread, torch.tensor([464.0, -1e9, 1e-9])])
    found = np.zeros(len(x), np.uint8)
    _store(x.numpy(), found)
    theirs = x.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    np.testing.assert_array_equal(found, theirs)


@njit
def _store(x, codes):
    for i in range(len(x)):
        write(codes, i, x[i])
