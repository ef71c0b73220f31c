import numpy as np

from engine.kernels.sample import Wishes, greedy, prepare, ready, reference, rows_cpu, sample, work


def logits(rows, vocab, seed=0):
    return np.random.default_rng(seed).normal(0, 3, (rows, vocab)).astype(np.float32)


def test_greedy_takes_the_first_of_the_likeliest_with_its_log_probability():
    for vocab in (1, 15, 16, 1003):
        x = logits(7, vocab)
        x[3, vocab // 2 :] = x[3].max()
        tokens, logprobs = greedy(x)
        expected, exact = reference.greedy(x)
        assert tokens.tolist() == expected.tolist()
        np.testing.assert_allclose(logprobs, exact, atol=2e-6)


def test_greedy_searches_all_blocks_of_a_long_row_and_takes_the_first_of_equals():
    vocab = 5 * rows_cpu.BLOCK * 16 + 21
    x = logits(6, vocab)
    for row, places in enumerate(([0], [1023, 1024], [3000, 5000], [vocab - 1], [2048, vocab - 1])):
        x[row, places] = 99.0
    x[5] = -np.inf
    x[4, 100:900] = np.nan  # of those nobody is the largest
    assert greedy(x)[0].tolist() == [0, 1023, 3000, vocab - 1, 2048, 0]
    assert greedy(np.full((1, vocab), np.nan, np.float32))[0].tolist() == [0]


def test_rows_say_the_same_on_one_thread_and_on_many():
    x = logits(5, 4001)
    found = []
    for kernel in (rows_cpu._greedy, rows_cpu._greedy_alone):
        tokens, logprobs = np.empty(5, np.int32), np.full(5, np.nan, np.float32)
        kernel(x.reshape(-1), 5, 4001, tokens, logprobs)
        found.append((tokens.tobytes(), logprobs.tobytes()))
    assert found[0] == found[1]


def test_every_cut_draws_what_plain_numpy_draws():
    draw, rows = np.random.default_rng(1), 200
    wishes = Wishes(
        draw.choice([0.0, 0.5, 1.0, 3.0], rows),
        draw.choice([0, 1, 5, 4000], rows),
        draw.choice([0.1, 0.9, 1.0], rows),
        draw.choice([0.0, 0.2], rows),
        draw.integers(0, 2**62, rows),
        np.arange(rows),
    )
    x = logits(rows, 300)
    assert sample(x, wishes).tolist() == reference.sample(x, wishes).tolist()


def test_equal_weights_at_the_edge_of_top_p_stay_in_order():
    x = np.zeros((64, 40), np.float32)
    ones = np.ones(64)
    wishes = Wishes(ones, 0 * ones, 0.5 * ones, 0 * ones, np.arange(64), 0 * ones)
    drawn = sample(x, wishes)
    assert drawn.tolist() == reference.sample(x, wishes).tolist() and drawn.max() < 20


def test_a_draw_depends_on_its_own_row_only():
    x, ones = logits(8, 50), np.ones(8)
    seeds, places = np.arange(8), np.arange(8) * 3
    wishes = Wishes(ones, 0 * ones, ones, 0 * ones, seeds, places)
    together = sample(x, wishes)
    for r in range(8):
        one = slice(r, r + 1)
        assert sample(x[one], Wishes(*[column[one] for column in wishes]))[0] == together[r]


def test_draws_follow_the_distribution():
    rows = 4000
    x = np.tile(np.log(np.array([[0.5, 0.3, 0.2]], np.float32)), (rows, 1))
    ones = np.ones(rows)
    drawn = sample(x, Wishes(ones, 0 * ones, ones, 0 * ones, np.arange(rows), 7 * ones))
    counts = np.bincount(drawn, minlength=3)
    chi = (
        (counts - rows * np.array([0.5, 0.3, 0.2])) ** 2 / (rows * np.array([0.5, 0.3, 0.2]))
    ).sum()
    assert chi < 13.8  # 0.999 quantile with 2 degrees of freedom


def test_no_rows_give_no_tokens():
    assert len(greedy(np.zeros((0, 5), np.float32))[0]) == 0
    none = np.zeros(0)
    assert len(sample(np.zeros((0, 5), np.float32), Wishes(*[none] * 6))) == 0


def test_prepared_kernels_are_ready():
    prepare()
    assert ready()


def test_work_reads_the_logits_once():
    assert work.flops(2, 3) == 24 and work.bytes(2, 3) == 24
