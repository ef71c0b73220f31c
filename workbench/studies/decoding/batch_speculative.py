"""Batch speculative decoding: ragged acceptance in a batch, realigned, grouped, or on pages."""

from engine.inference.config import InferenceConfig
from engine.inference.policies.batching.same_length import SameLength
from engine.inference.policies.drafters.draft_model import DraftModel
from engine.inference.run import run
from engine.inference.workloads.uniform import Uniform
from workbench.studies.decoding._batch_speculative import (
    BATCH,
    DESCRIBED,
    DRAFTED,
    EQSPEC,
    PAGED,
    PLAIN,
    at_batch,
    at_drafts,
    at_size,
    batch_of_eight,
    drafts,
    here,
    pays,
    pays_at,
    pool_pays,
    realigning,
    same_answers,
    share_at,
)
from workbench.studies.decoding._exspec import APART, LEVEL_CLAIMS, LEVEL_REGIMES
from workbench.study import Break, Claim, Regime, Reported, Study, Taught

LUCKY = Break(
    {"speculation.fault": "one_length"},
    mechanism=True,
    why="every row takes as many drafts as the luckiest: nothing is ragged, and answers are wrong",
)
PRESERVED = "speculative speed-ups are preserved for each sequence (abstract)"
DRAFTS = {
    "9 of 10 drafts right": drafts(0.9),
    "7 of 10": drafts(0.7),
    "5 of 10": drafts(0.5),
}
SHIFTED = Break(
    {"speculation.fault": "shifted"},
    mechanism=True,
    why="each draft is held against the token after its own, so that hardly one is kept",
)
PAIR = Taught({"model": "stdlib-5m", "speculation.model": "stdlib-draft-1m"})

STUDY = Study(
    slug="batch-speculative",
    title="Batch Speculative Decoding (EXSPEC)",
    driver=run,
    config=InferenceConfig(
        workload=Uniform(count=16, shortest=8, longest=32),
        speculation=DraftModel(model="stdlib-draft-1m", alignment="padded"),
        batching=SameLength(size=BATCH),
        max_running=3 * BATCH,  # the pool, as the paper's window is to its batch
        pages=512,
        sampling={"max_tokens": 48},
    ),
    views=("token_river", "acceptance", "schedule", "page_map"),
    about=(
        "A small model drafts a few tokens for every request of a batch, the large one verifies "
        "them all in one pass, and each request keeps as many as hold. In a batch they keep "
        "different numbers, so that rows which lay side by side come apart: positions, masks and "
        "cached keys no longer line up. EQSPEC realigns the batch after every such step; EXSPEC "
        "keeps a pool larger than the batch and decodes together whoever are level, so that there "
        "is less to realign. Beside them stands an engine whose page table is the alignment: each "
        "row goes on from where its drafts held, and the pages of refused drafts are given back."
    ),
    tries=(
        ("Realign after every step (EQSPEC)", EQSPEC),
        ("The page table is the alignment", PAGED),
        ("Qwen3-8B and 0.6B on an A100", DESCRIBED),
    ),
    presets={"eqspec": EQSPEC, "paged": PAGED, "plain": PLAIN, "described": DESCRIBED},
    claims=(
        Claim(
            id="same-answers",
            sentence="Every request of every batch says what plain decoding says, token for token.",
            paper="95% of outputs equal, the rest ties of floating-point numbers (abstract)",
            grade="exact",
            check=same_answers,
            reported=Reported(0.0, "equal", unit="answers that differ"),
            finding="reproduced",
            why="a row's sums have the same bits in any batch here, so that no tie goes the other "
            "way: all of the answers, not 95 in 100",
            broken=(
                LUCKY,
                Break(
                    {"speculation.fault": "misaligned"},
                    mechanism=True,
                    why="of a realigned batch the shorter rows land one place off",
                ),
            ),
        ),
        Claim(
            id="realigning",
            sentence="Realigning a ragged batch takes two fifths of what speculation adds.",
            paper="realignment consumes 40% of overhead (abstract)",
            grade="modelled",
            check=realigning,
            reported=Reported(0.4, none=0.0, unit="%"),
            finding="weaker",
            why="copying at the device's bandwidth alone; what the paper times is unpadding and "
            "padding row by row from Python, and its drafts recompute their past",
            broken=(LUCKY, Break({"speculation.alignment": "paged"})),
        ),
        *LEVEL_CLAIMS,
        Claim(
            id="batch-of-eight",
            sentence="A batch of eight yields three times the tokens a second of a batch of one.",
            paper="up to 3 times the throughput at batch size 8 against 1 (abstract)",
            grade="modelled",
            check=batch_of_eight,
            reported=Reported(3.0, none=1.0, unit="×"),
            finding="reproduced",
            why="more than the paper's: the described device's steps are bound by weights, read "
            "once for all eight, and realigning costs bandwidth alone. It is the batch's gain, not "
            "speculation's: plain decoding of eight yields 7.6 times that of one",
            broken=(APART, Break({"batching.size": 1}, why="no batch at all")),
        ),
        Claim(
            id="pays",
            sentence="In a batch of eight speculation is still faster than plain decoding.",
            paper=PRESERVED,
            grade="modelled",
            check=pays,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="reproduced",
            why="a direction: the abstract gives no figure against plain decoding; eight requests "
            "at hand for both, realigned after every step (EQSPEC). Seven of ten drafts right is "
            "our choice, and with five of ten nothing is left in a batch of eight (map)",
            broken=(SHIFTED, Break(PLAIN)),
        ),
        Claim(
            id="pool-pays",
            sentence="So are batches of eight out of a pool, beside plain decoding of the pool.",
            paper=PRESERVED,
            grade="modelled",
            check=pool_pays,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="this project's own condition: EXSPEC keeps the keys and values of 24 requests and "
            "computes eight of them a pass, and who has memory for 24 may decode all of them: 0.57 "
            "of that. Beside plain decoding of eight alone it is 1.50 times as fast; on pages, "
            "where nobody has to be level, all 24 drafted for are 1.26 times as fast as plain",
            broken=(APART, Break(PLAIN)),
        ),
        Claim(
            id="faster-here",
            sentence="On this machine drafts of the shipped pair make one request faster.",
            paper="speculative decoding speeds up inference by verifying in parallel (abstract)",
            grade="measured",
            timed=True,
            taught=PAIR,
            check=here,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="0.76 of plain decoding's tokens a second [0.66, 0.87] over nine workloads on one "
            "quiet day, 0.99 [0.89, 1.11] on another, on processors of one name; a direction, the "
            "pair is ours, and prompts are random",
            broken=(
                SHIFTED,
                Break(
                    {"speculation.model": "stdlib-5m"},
                    mechanism=True,
                    why="the draft is the target: always right and as dear",
                ),
                Break(PLAIN),
            ),
        ),
    ),
    regimes=(
        Regime(
            claim="pays",
            knob="batch",
            values=(1, 4, 8, 16, 32, 64, 128, 256),
            coarse=(1, 8, 64),
            x="requests at once",
            y="times plain decoding of as many, drafts aligned by pages",
            less="32 tokens of each",
            default=BATCH,
            paper=8,
            paper_is="the paper's batch",
            log_x=True,
            noun="requests",
            judged=at_batch(PAGED),
            series=DRAFTS,
        ),
        Regime(
            claim="pool-pays",
            knob="pool",
            values=(1, 2, 3),
            coarse=(1, 3),
            x="requests at hand, over those of a batch",
            y="tokens a second over plain decoding of all at hand (×)",
            default=3,
            judged=pays_at,
        ),
        Regime(
            claim="batch-of-eight",
            knob="batch",
            values=(2, 4, 8, 16, 32, 64),
            coarse=(2, 8, 32),
            x="requests in a batch, of three times as many at hand",
            y="tokens a second over a batch of one (×)",
            default=BATCH,
            paper=BATCH,
            paper_is="the paper's batch",
            log_x=True,
            noun="requests",
            judged=at_size,
            series=DRAFTS,
        ),
        *LEVEL_REGIMES,
        Regime(
            claim="faster-here",
            knob="drafted",
            values=(1, 2, DRAFTED, 4, 6),
            coarse=(1, DRAFTED),
            x="drafts of a pass",
            y="times plain decoding, one request at a time",
            default=DRAFTED,
            judged=at_drafts,
            noun="drafts",
        ),
        Regime(
            claim="realigning",
            knob="realigning",
            values=(1, 3, 10, 17, 30, 100),
            coarse=(1, 17),
            x="time that realigning takes, over a copy's at the device's bandwidth (×)",
            y="realigning's share of what speculation adds (%)",
            default=1,
            log_x=True,
            judged=share_at,
        ),
    ),
    limits=(
        "Drafts here share the target's block table: whatever is shared, forked, swapped or given "
        "back of the one holds for the other. The rectangle is made beside the pages: keys and "
        "values are really copied into it and back, padding is not computed, and attention reads "
        "pages, where the paper's reads the rectangle. On the described device realigning is a "
        "copy at full bandwidth. The claims of levelness stand in the setting of the paper's table "
        "as its authors' repository has it (batch, window, questions, share of right drafts), with "
        "the pair Qwen3-8B/0.6B in place of Vicuna's, of which the draft's shape was not found; "
        "what a batch takes is that code's rule, too, a whole level one or one that is filled up: "
        "with half a level batch as enough, as this study had it before, EXSPEC is 1.16 times as "
        "fast as EQSPEC, not 1.54, and 0.77 beside one that is refilled (maps). That log has the "
        "mean of answers' lengths; their spread, 1.0, is ours: with half of it and as many tokens "
        "it is 1.43 [1.41, 1.46], with half as much again 1.57 [1.47, 1.67], which reaches the "
        "paper's figure. Other claims stand in a setting of ours. Whether a modelled draft is "
        "right is drawn with one probability for every place; real ones come in runs. The "
        "described draft runs on the target's own device. `faster-here` rests on three drafts a "
        "pass, a choice of ours: with one it is contrary, with two to six undecided (map)."
    ),
)
