"""Finds the adapters and runs those whose package is installed, on the benchmark's own weights."""

import importlib
import importlib.util
import pkgutil
import tempfile
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from engine.core.errors import BadInput
from engine.models.loading.load import random_weights, save
from workbench.benches._decode_work import SEED, SHAPE, Answered, Ask, model_config

Row = dict[str, Any]


def names() -> list[str]:
    """Every adapter, by file name."""
    here = [str(Path(__file__).parent)]
    found = (module.name for module in pkgutil.iter_modules(here))
    return sorted(name for name in found if name != "measure" and not name.startswith("_"))


def measure(
    name: str, wanted: dict[str, dict[str, list[Ask]]], theirs: dict[str, float], rounds: int
) -> list[tuple[Row, Answered | None]]:
    """A row for each set of requests of each number format (`wanted`: by format, by row name) that
    the peer has, and what it answered; `theirs` are transformers' tokens a second by row name.

    An adapter has PACKAGE, INSTALL (what to give pip), FORMATS and `open(folder, work, format)`, in
    whose context there is a call from requests to `Answered`. A peer that is absent gives one row
    that says so, and so does a format with which it does not start. Adapters run after the others,
    not in turns with them.
    """
    adapter = importlib.import_module(f"workbench.benches._peers.{name}")
    engine = name.replace("_", "-")
    if importlib.util.find_spec(adapter.PACKAGE) is None:
        every = ", ".join(each for named in wanted.values() for each in named)
        why = f"not installed (pip install {adapter.INSTALL})"
        return [({"name": every, "engine": engine, "missing": why}, None)]
    rows: list[tuple[Row, Answered | None]] = []
    for dtype in (each for each in wanted if each in adapter.FORMATS):
        start: Row = {"engine": engine, "dtype": dtype}
        try:
            with tempfile.TemporaryDirectory() as folder:
                rows += _rows(adapter, Path(folder), start, wanted[dtype], theirs, rounds)
        except BadInput as fault:
            missing = {"name": ", ".join(wanted[dtype]), **start, "missing": str(fault)}
            rows.append((missing, None))
    return rows


def _rows(
    adapter: ModuleType,
    folder: Path,
    start: Row,
    wanted: dict[str, list[Ask]],
    theirs: dict[str, float],
    rounds: int,
) -> list[tuple[Row, Answered | None]]:
    checkpoint, work = folder / "checkpoint", folder / "work"
    work.mkdir()
    _write(checkpoint)
    rows: list[tuple[Row, Answered | None]] = []
    with adapter.open(checkpoint, work, start["dtype"]) as answer:
        for name, asks in wanted.items():
            answer([Ask(ask.prompt, 4) for ask in asks])
            answered = [answer(asks) for _ in range(rounds)]
            rate = median(each.rate(len(asks) == 1) for each in answered)
            row = {"name": name, **start, "tokens_per_second": rate}
            if name in theirs:
                row["ratio_to_transformers"] = rate / theirs[name]
            rows.append((row, answered[0]))
    return rows


def _write(folder: Path) -> None:
    """The benchmark's weights as a Hugging Face folder, with a tokenizer that only has to exist."""
    save(folder, model_config(), random_weights(model_config(), SEED))
    words = {"<unk>": 0, "<s>": 1, "</s>": 2}
    words |= {f"w{number}": number for number in range(3, SHAPE["vocab_size"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    wrapped.save_pretrained(folder)
