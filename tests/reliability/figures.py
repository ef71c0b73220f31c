"""The 25 figures: what is asked, which tests try it, how far they go short and full.

What lasts, lasts as long as --soak says; met it is only where that is all that was asked.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`tests`: of pytest; `short` and `full`: what they try without and with --full."""

    number: int
    asked: str
    tests: tuple[str, ...]
    short: str = ""
    full: str = ""
    lasts: float = 0.0  # hours asked


E, W = "tests/engine", "tests/workbench"
LAUNCH = f"{E}/distributed/test_launch.py"
FAULTS = f"{E}/training/trainer/test_faults.py"
FUZZED = "tests/reliability/test_fuzzed.py"
CLIENTS = "tests/reliability/test_clients.py"

FIGURES = (
    Figure(1, "2,000 seeds x 500 operations, every page with its holders after every one",
           (f"{E}/inference/test_invariants.py",),
           "64 seeds x 60", "2,000 seeds x 500"),
    Figure(2, "free + cached + held = total after every test and on a live engine",
           (f"{E}/inference/test_invariants.py",
            f"{CLIENTS}::test_no_token_is_lost_whoever_leaves_or_reads_slowly"),
           "at the end of 64 lives, after 40 clients", "of 2,000 lives, after 1,000 clients"),
    Figure(3, "a quarter of the pages: 1,000 requests answer token for token the same",
           (f"{E}/inference/test_exactness.py::"
            "test_answers_are_the_same_with_a_quarter_of_the_pages",),
           "12 requests, two ways to preempt, two orders", "1,000 requests, both, both"),
    Figure(4, "nobody waits beyond a bound in 500 adversarial patterns",
           (f"{E}/inference/test_liveness.py",), "60 patterns", "500 patterns"),
    Figure(5, "abort in every state x every pending operation, enumerated",
           (f"{E}/inference/test_abort.py",), "all pairs", "all pairs"),
    Figure(6, "1,000 streaming clients, none loses, doubles or disorders a token",
           (f"{CLIENTS}::test_no_token_is_lost_whoever_leaves_or_reads_slowly",
            f"{CLIENTS}::test_slow_readers_cost_the_others_nothing"),
           "40 at once, 30% leave", "1,000 at once, 30% leave, 5% slow, in four rounds"),
    Figure(7, "24 hours of load: memory, descriptors and threads constant",
           (f"{CLIENTS}::test_a_soak_leaves_everything_where_it_was",),
           "three rounds of 10 clients", lasts=24),
    Figure(8, "the engine ends under load: each client hears it, a restart serves",
           (f"{W}/api/test_drain.py", f"{W}/api/test_front.py"),
           "killed, drained and cut off, under streams and whole answers", "the same"),
    Figure(9, "200 interrupts: back within 1 s, no orphan",
           (f"{W}/test_stop.py", "tests/reliability/test_interrupts.py"),
           "4 servers, 3 commands", "200 points of five commands, of processor time"),
    Figure(10, "the k-th allocation fails, k to 300: one typed error, the pool whole",
           ("tests/reliability/test_memory.py",), "8 of the 300",
           "k = 1 to 300, of numpy and torch"),
    Figure(11, "64 prompts, any batch, order, chunk, prefix, preemption: logits bit for bit",
           (f"{E}/inference/test_batch_invariance.py",),
           "two families, batches of 3 and 64, two token by token",
           "all 42 families, batches of 1 to 64; states and indices token by token"),
    Figure(12, "20 runs of a seed: the same tokens; draws follow seed and position alone",
           (f"{E}/inference/test_repeats.py", f"{E}/inference/test_exactness.py::"
            "test_sampled_answers_depend_on_the_seed_and_not_on_the_batch"),
           "4 runs, real and modelled", "20 runs, real and modelled"),
    Figure(13, "speculative = greedy on 1,000 prompts; sampling keeps its distribution",
           (f"{E}/inference/test_speculation.py",),
           "20 random schedules, 10,000 draws", "500 random schedules, 10^5 draws"),
    Figure(14, "torch, numba and Triton agree on 500 random shapes",
           (f"{E}/kernels/test_random_shapes.py",), "3 of each of three kernels",
           "500 of each, Triton interpreted"),
    Figure(15, "kill -9 at every phase x rank of 2 to 4: the same losses after",
           (FAULTS,), "those pairs that are quick", "every phase x rank of 2 and 4"),
    Figure(16, "hang, slowness, half-open socket, garbage: found in time, named, 1,000 seeded runs",
           (f"{E}/distributed/test_bad_messages.py",
            f"{LAUNCH}::test_a_hanging_rank_ends_the_run_within_its_limit_and_is_named",
            f"{LAUNCH}::test_a_killed_rank_ends_the_run_and_is_named"),
           "16 runs of eight kinds, and as processes", "1,000 runs of two to four ranks"),
    Figure(17, "an hour of peers that come and go: training goes on, all hold the same bits",
           (f"{E}/training/low_communication/test_churn.py", "tests/reliability/test_churn.py"),
           "8 outer steps, two killed, two let in", lasts=1),
    Figure(18, "parallel = one process, 20 steps in float64 to 1e-10, all ways and pairs",
           (f"{E}/training/parallel/test_two_ranks.py",
            f"{E}/training/parallel/test_four_ranks.py",
            f"{E}/training/parallel/test_twenty_steps.py"),
           "each way on two ranks, pairs on four, float32",
           "20 steps in float64 of 17 ways and their 82 pairs"),
    Figure(19, "5,000 random schedules: whole, in order, no deadlock, memory as published",
           (f"{E}/training/plan/test_many_plans.py",), "60 of seven kinds", "5,000 of seven kinds"),
    Figure(20, "byzantine aggregation, error feedback to 1 ulp",
           (f"{E}/training/low_communication/test_feedback.py",
            f"{E}/training/low_communication/test_aggregation.py"),
           "sums of 50 steps, three codecs; 12 draws of six attacks on five aggregators",
           "sums of 1,000 steps, one ulp a step; 1,000 draws"),
    Figure(21, "2,000 malformed files: no crash, no hang, one line each",
           ("tests/malformed", f"{FUZZED}::test_no_file_costs_more_than_its_price"),
           "over 2,000 files, 15 bombs", "over 20,000 files, 500 bombs"),
    Figure(22, "50 escapes and 10 bombs of templates: none runs, each stopped",
           (f"{E}/models/text/test_chat.py", f"{E}/models/text/test_renderer.py",
            f"{FUZZED}::test_no_template_escapes_or_stays"),
           "named ones and 45 drawn", "named ones and 300 drawn"),
    Figure(23, "every route x wrong token, Host, Origin refused; nothing runs data",
           (f"{W}/api/test_gate.py", "tests/architecture/test_nothing_runs_data.py"),
           "every route", "every route"),
    Figure(24, "100 ways out of a folder refused",
           (f"{FUZZED}::test_a_hundred_ways_out_of_a_folder_are_refused",),
           "106 names, three ways to ask", "the same"),
    Figure(25, "the simulator: conservation, causality, M/M/1 and M/D/1 within 2%",
           (f"{E}/inference/test_queue_theory.py", f"{E}/inference/test_run.py",
            f"{E}/fleet/test_queueing.py"),
           "Lindley's recursion over 3,000 arrivals, of a fleet over 60,000",
           "M/M/1 and M/D/1 over 10^6 arrivals, of an engine and a fleet"),
)  # fmt: skip
