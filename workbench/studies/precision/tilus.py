"""Tilus: weights of any width from one to eight bits, multiplied as they are packed."""

from engine.core.config import update
from engine.core.events import Level, Span
from engine.core.log import Log
from engine.kernels.experiments.low_bits.config import LowBitsConfig
from engine.kernels.experiments.low_bits.run import (
    BFLOAT16,
    BITS,
    FIRST,
    FLOAT32,
    PACKED,
    WRONG,
    run,
)
from engine.kernels.quantised.formats import format_of
from workbench.study import (
    Break,
    Changes,
    Claim,
    Figure,
    Outcome,
    Regime,
    Reported,
    RunConfig,
    Study,
)  # fmt: skip

WIDE = ("some", "integers", "floats")  # spectra that have every format
EXACT = 2e-6  # relative: float32 sums of some thousand products
SLACK = 0.01  # of a code's bits: what may be lost to the ends of blocks
ODD: Changes = {"outputs": 100, "inputs": 1000, "rows": 3, "group": 96, "repeats": 1}
LARGE: Changes = {"outputs": 4096, "inputs": 4096, "repeats": 8}
BESIDE: Changes = {**LARGE, "spectrum": "four and eight"}
FOUR: Changes = {**LARGE, "spectrum": "four"}
ROUNDS = {True: (8,), False: (8, 88)}  # what is nearer takes more rounds to tell
PEERS = "1.75× Triton, 2.61× Ladder, 1.29× QuantLLM, 1.03× Marlin (abstract)"


def levels(log: Log, name: str) -> dict[str, float]:
    """A quantity by format."""
    return {level.lane: level.value for level in log.of(Level) if level.name == name}


def everything(config: LowBitsConfig, run_config: RunConfig, fast: bool, name: str, **more):
    """A quantity of every format; of some in the small setting."""
    found: dict[str, float] = {}
    for spectrum in ("some",) if fast else WIDE:
        found |= levels(run_config(update(config, {**more, "spectrum": spectrum})), name)
    return found


def exact(config: LowBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Products of odd shapes against dequantise-then-multiply in float64."""
    found = everything(config, run_config, fast, "error of the product", **ODD)
    worst = max(found, key=lambda name: found[name])
    return Outcome(
        f"every width within {EXACT:g} of dequantise-then-multiply",
        f"{found[worst]:.1e} ({worst}) over {len(found)} formats",
        found[worst] <= EXACT,
        figure=Figure.exact(found[worst]),
        needed=EXACT,
    )


def placed(config: LowBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Codes read from memory at the bits that the product of layouts gives."""
    found = everything(config, run_config, fast, WRONG, **ODD)
    worst = max(found, key=lambda name: found[name])
    return Outcome(
        "no code of any width lies elsewhere",
        f"{found[worst]:.1%} elsewhere ({worst}) over {len(found)} formats",
        found[worst] == 0,
        figure=Figure.exact(found[worst], "%"),
        needed=0.0,
    )


def bytes_follow(config: LowBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Bits that a code takes in memory over its own; whole blocks, so that ends cost nothing."""
    found = everything(config, run_config, fast, BITS, outputs=256, inputs=1024, repeats=1)
    over = {name: bits / format_of(name).bits for name, bits in found.items()}
    worst = max(over, key=lambda name: abs(over[name] - 1))
    return Outcome(
        f"each code takes its own bits, within {SLACK:.0%}",
        f"{over[worst]:.3f}× ({worst}) over {len(found)} formats",
        abs(over[worst] - 1) <= SLACK,
        figure=Figure.exact(over[worst], "×"),
        needed=1 + SLACK,
    )


def seconds(log: Log, name: str, way: str) -> list[float]:
    """Of a format's products, in the order of rounds."""
    spans = [s for s in log.of(Span) if s.lane == name and s.name == way]
    return [span.stop - span.start for span in spans]


def faster(config: LowBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Four bits against both plain ways, paired by round, on a layer of 4,096 by
    4,096; the others' weights are read between two turns of one."""
    log = run_config(update(config, BESIDE if fast else {**BESIDE, "repeats": 24}))
    ours = seconds(log, "int4", PACKED)
    rivals = {
        "dequantise first": Figure.ratio(seconds(log, "int4", FIRST), ours),
        "float32 weights": Figure.ratio(seconds(log, "float32", FLOAT32), ours),
        "eight bits packed": Figure.ratio(seconds(log, "int8", PACKED), ours),
    }
    strongest = min(list(rivals)[:2], key=lambda name: rivals[name].value)
    told = "; ".join(f"{n} {f.value:.2f}× ({f.low:.2f} to {f.high:.2f})" for n, f in rivals.items())
    return Outcome(
        "int4 faster than both plain ways, 95% interval too; eight bits are told",
        f"{told}; n = {len(ours)}",
        rivals[strongest].low > 1.0,
        figure=rivals[strongest],
        needed=1.0,
    )


def over_half(config: LowBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Four bits against weights that are no codes, in 16 bits, paired by round; at full size more
    of them, unless all of the first ones' interval is slower already."""
    ours, theirs = list[float](), list[float]()
    for rounds in ROUNDS[fast]:
        log = run_config(update(config, {**FOUR, "repeats": rounds}))
        ours += seconds(log, "int4", PACKED)
        theirs += seconds(log, "bfloat16", BFLOAT16)
        figure = Figure.ratio(theirs, ours)
        if figure.high < 1.0:
            break
    return Outcome(
        "int4 faster than bfloat16 weights, 95% interval too",
        f"{figure.value:.2f}× ({figure.low:.2f} to {figure.high:.2f}); n = {figure.n}",
        figure.low > 1.0,
        figure=figure,
        needed=1.0,
    )


STUDY = Study(
    slug="tilus",
    driver=run,
    config=LowBitsConfig(),
    views=("curves", "roofline", "levels"),
    about=(
        "A weight of five bits takes five bits: codes follow each other over the ends of 32-bit "
        "words, sixteen outputs side by side. One emitter makes the product of every width and "
        "kind, since where each code lies is known when it is compiled: a shift or two, then a "
        "lookup in a register, a conversion, or a float16 of the same bits. Nothing is unpacked "
        "to memory. Where a code lies follows from a product of layouts, which thread holds what, "
        "and is checked against the bits. Points in the roofline move right along the bandwidth "
        "roof as bits fall: the same flops, fewer bytes."
    ),
    tries=(
        ("Integers of every width", {"spectrum": "integers"}),
        ("A layer of 4,096 by 4,096", {"outputs": 4096, "inputs": 4096}),
        ("Codes in containers of 1, 2, 4 or 8 bits", {"containers": True, "spectrum": "integers"}),
    ),
    presets={"large": LARGE, "floats": {"spectrum": "floats"}},
    claims=(
        Claim(
            id="exact",
            sentence="Every width gives what dequantise-then-multiply gives.",
            paper="a full spectrum of low-precision data types (abstract)",
            reported=Reported(0.0, "equal", tolerance=EXACT),
            finding="reproduced",
            why=f"equal as far as float32 sums go: {EXACT:g}",
            grade="exact",
            check=exact,
            broken=(Break({"shifted": True}, True, "a block's last word lies one lane on"),),
        ),
        Claim(
            id="layout",
            sentence="Each code lies at the bits that the algebra of layouts gives.",
            paper="a novel algebraic layout system (abstract)",
            reported=Reported(0.0, "equal", unit="%"),
            finding="reproduced",
            grade="exact",
            check=placed,
            broken=(Break({"shifted": True}, True, "a block's last word lies one lane on"),),
        ),
        Claim(
            id="bytes",
            sentence="A code takes its own bits in memory, whatever the width.",
            paper="arbitrary bit widths, where others take powers of two (abstract)",
            reported=Reported(1.0, "equal", tolerance=SLACK, unit="×"),
            finding="reproduced",
            why="a hundredth is left for the ends of blocks; scales come on top, 32 bits a group",
            grade="exact",
            check=bytes_follow,
            broken=(Break({"containers": True}, True, "codes take the next power of two of bits"),),
        ),
        Claim(
            id="faster",
            sentence="Four bits multiplied as packed are faster than unpacking them first.",
            paper=PEERS,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="reproduced",
            why="the paper's rivals are GPU kernels, which are not here: the rivals here are "
            "dequantise-then-multiply and float32 weights, so any lead counts",
            grade="measured",
            timed=True,
            check=faster,
            broken=(Break({"unpacked": True}, True, "codes are unpacked to memory first"),),
        ),
        Claim(
            id="over-half",
            sentence="They are faster than weights of 16 bits, too.",
            paper=PEERS,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="undecided",
            fails=("full",),
            why="this project's own condition: who does not quantise keeps 16 bits, not 32. Told "
            "beside others' work alone, which shares the memory's bandwidth: 0.96 to 1.30 in three "
            "runs of 96 rounds; a quiet machine has to say",
            grade="measured",
            timed=True,
            check=over_half,
            broken=(Break({"unpacked": True}, True, "codes are unpacked to memory first"),),
        ),
    ),
    regimes=tuple(
        Regime(
            claim,
            "rows",
            (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0),
            x="rows multiplied at once",
            y=f"the time of {rival} over ours (×)",
            coarse=(1.0, 8.0, 64.0),
            log_x=True,
            noun="rows",
        )
        for claim, rival in (
            ("faster", "the faster plain way"),
            ("over-half", "weights of 16 bits"),
        )
    ),
    limits=(
        "The paper's virtual machine compiles programs of thread blocks for GPUs; here one emitter "
        "makes one product, on this processor, and one Triton kernel reads the same words, held "
        "through the interpreter and never timed. The layouts state and check where codes lie; "
        "they do not choose an instruction. Scales take 32 bits a group. Activations stay "
        "float32: products that round them to 8 bits are faster and not exact."
    ),
)
