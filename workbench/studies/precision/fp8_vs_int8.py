"""FP8 versus INT8: which errs less, on what, and what its arithmetic costs."""

from engine.training.quantisation.eight_bits import run
from engine.training.quantisation.eight_bits_config import EightBitsConfig
from workbench.studies.precision._fp8_vs_int8 import (
    FULL,
    NO_WORSE,
    at_rate,
    at_size,
    by_layer,
    crosses,
    dearer,
    no_worse,
    of_heaviest,
    well_behaved,
    when_trained,
    with_channels,
    with_multiplexers,
)
from workbench.study import Break, Claim, Regime, Reported, Study, Taught

TAUGHT = Taught({"model": "stdlib-5m"})
STUDY = Study(
    slug="fp8-vs-int8",
    driver=run,
    config=EightBitsConfig(),
    views=("curves", "levels", "roofline"),
    about=(
        "Eight bits may be an integer or a float with two to five bits of exponent. An integer's "
        "values lie evenly, a float's closer to nought: the one errs less where numbers fill "
        "their range, the other where a few stand far outside. Tensors are drawn with more and "
        "more outliers; every linear layer of a shipped model is fed with what the float32 model "
        "feeds it and its error told beside the tails of its inputs; the whole model's loss is "
        "taken under each format; one block's layers are trained through their own rounding. "
        "Gates of a multiply-accumulate unit are counted from textbook parts."
    ),
    tries=(
        ("Outliers of three times the rest", {"outlier": 3.0}),
        ("Ranges by the largest magnitude", {"best": False}),
        ("Floats whose values lie evenly", {"evenly": True}),
    ),
    presets={"full": FULL},
    claims=(
        Claim(
            id="well-behaved",
            sentence="INT8 errs less than FP8 (E4M3) on numbers without outliers.",
            paper="the difference between the formats is shown in theory (abstract, which does "
            "not say on what)",
            reported=Reported(0.0, none=0.0, unit="dB"),
            finding="reproduced",
            why="judged against E4M3, which hardware has; E2M5, which none has, errs less than "
            "INT8 on normal numbers and more on uniform ones; the abstract states no figure",
            grade="measured",
            check=well_behaved,
            broken=(
                Break({"coarse": True}, True, "integers keep four bits"),
                Break({"evenly": True}, why="floats with integers' even values"),
            ),
        ),
        Claim(
            id="crosses",
            sentence="With a few outliers FP8 errs less: the error crosses with their rate.",
            paper="the difference between the formats is shown in theory (abstract); that it "
            "turns with the outliers is how our list of systems has it",
            reported=Reported(0.0, none=0.0, unit="dB"),
            finding="reproduced",
            why="the figure is FP8's lead at its largest; the abstract states none",
            grade="measured",
            check=crosses,
            broken=(
                Break({"evenly": True}, True, "a float's values lie evenly: no exponent"),
                Break({"outlier": 1.0}, why="no outliers"),
            ),
        ),
        Claim(
            id="no-worse",
            sentence="INT8 is no worse than FP8 for a model's inference after training.",
            paper="results for inference do not warrant a dedicated implementation of FP8 "
            "(abstract)",
            reported=Reported(0.0, "less", tolerance=NO_WORSE, unit="nats"),
            finding="reproduced",
            why=f"{NO_WORSE:g} nats, a hundredth of the perplexity, counts as no worse: ours. With "
            "ranges by the largest magnitude, where nothing is cut off, it is 0.0018 "
            "[-0.0027, 0.0063]. No channel of this small model stands out as those of large ones "
            "do: with one in 64 eight times its size INT8 is 0.031 worse [0.019, 0.045] (map)",
            grade="measured",
            taught=TAUGHT,
            check=no_worse,
            broken=(Break({"coarse": True}, True, "integers keep four bits"),),
        ),
        Claim(
            id="by-layer",
            sentence="FP8 gains on INT8 where a layer's inputs have heavy tails.",
            paper="not in the abstract: its comparison layer by layer",
            reported=Reported(0.0, none=0.0, unit="dB"),
            finding="reproduced",
            why="layers of one small model; INT8 is ahead on most of them all the same. Which of "
            "them have heavy tails is ours, the heavier half: of the heaviest tenth it is 7.6 dB, "
            "of three quarters 2.9 [1.4, 4.3], of nine tenths undecided (map)",
            grade="measured",
            taught=TAUGHT,
            check=by_layer,
            broken=(Break({"evenly": True}, True, "a float's values lie evenly: no exponent"),),
        ),
        Claim(
            id="when-trained",
            sentence="Where layers are trained to be rounded, INT8 stays ahead of FP8 (E4M3).",
            paper="quantisation-aware training shows how the theory translates to practice "
            "(abstract)",
            reported=Reported(0.0, none=0.0, unit="dB"),
            finding="undecided",
            quick="reproduced",
            fails=("full",),
            why="layers of one block, each trained by itself against its own float32 output and "
            "judged on other text: of the seven, one whose inputs have heavy tails is far behind, "
            "and the interval, at full size from -1.2 to 6.8 dB, holds that too, so the check says "
            "no there. E4M3 gains a tenth of a decibel by training, INT8 less, and at larger "
            "learning rates it loses; the abstract states no figure",
            grade="measured",
            taught=TAUGHT,
            check=when_trained,
            broken=(
                Break({"coarse": True}, True, "integers keep four bits"),
                Break({"steps": 0}, why="nothing is trained"),
            ),
        ),
        Claim(
            id="dearer",
            sentence="A multiply-accumulate of FP8 takes more gates than one of INT8.",
            paper="50-180% less efficient in dedicated hardware (abstract)",
            reported=Reported(0.5, none=0.0, unit="%"),
            finding="reproduced",
            why="counted from textbook parts, not synthesised, over three accumulators; the figure "
            "is the middle one's, a fixed-point sum's, twice INT8's, and the finding rests on that "
            "choice: a float32 sum's 166% is in the paper's 50% to 180%, too, a float16 sum's 32% "
            "is weaker. INT8's own sum is of 32 bits beside each. It rests on what a multiplexer "
            "takes, too, three gates: with two it is 57% [10%, 112%] and undecided, with one 15% "
            "(map)",
            grade="modelled",
            check=dearer,
            broken=(
                Break({"free": True}, True, "a float's sum is neither aligned nor normalised"),
            ),
        ),
    ),
    regimes=(
        Regime(
            "well-behaved",
            "numbers",
            (256, 2048, 8192, 32768),
            x="numbers that share a range",
            y="INT8's lead over FP8 (dB)",
            coarse=(256, 8192),
            default=8192,
            log_x=True,
            noun="numbers",
        ),
        Regime(
            "no-worse",
            "channels",
            (1.0, 8.0, 32.0),
            x="size of one channel in 64 of activations, over what it is (×)",
            y="INT8's loss over FP8's (nats a token)",
            coarse=(1.0, 32.0),
            default=1.0,
            judged=with_channels,
            log_x=True,
        ),
        Regime(
            "by-layer",
            "share",
            (0.1, 0.25, 0.5, 0.75, 0.9),
            x="layers that are called heavy-tailed (share)",
            y="FP8's gain on INT8 there, less elsewhere (dB)",
            coarse=(0.25, 0.5, 0.75),
            default=0.5,
            judged=of_heaviest,
        ),
        Regime(
            "dearer",
            "multiplexer",
            (1, 2, 3, 4, 6),
            x="gates of a multiplexer, of which shifters are made (an adder: 5)",
            y="gates over INT8's, less one",
            default=3,
            judged=with_multiplexers,
            noun="gates",
        ),
        Regime(
            "crosses",
            "outlier",
            (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 24.0, 48.0),
            x="standard deviations of an outlier (×)",
            y="FP8's lead over INT8 at its largest (dB)",
            coarse=(2.0, 6.0, 24.0),
            default=12.0,
            judged=at_size,
            log_x=True,
        ),
        Regime(
            "when-trained",
            "rate",
            (0.001, 0.003, 0.01, 0.03, 0.1),
            x="learning rate at first (of a weight's step)",
            y="INT8's lead over FP8 after training (dB)",
            less="small setting",
            coarse=(0.003, 0.01, 0.03),
            default=0.01,
            judged=at_rate,
            log_x=True,
        ),
    ),
    limits=(
        "Formats are simulated in float32: numbers are rounded to what the format holds and "
        "multiplied as float32. One small language model, without the outlier features of large "
        "ones; embeddings, norms, attention's own products and the output head stay float32. E4M3 "
        "has 448 as its largest value and E5M2 no infinities; E2M5 and E3M4 use every code. "
        "Training is layer by layer on a few windows, not of the whole model. Gates are a count "
        "of parts: no wires, no timing, no energy."
    ),
)
