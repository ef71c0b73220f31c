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

from engine.models.load import random_weights, save
from workbench.benches._decode_work import SEED, SHAPE, Ask, model_config

Row = dict[str, Any]


def names() -> list[str]:
    """Every adapter, by file name."""
    here = [str(Path(__file__).parent)]
    return sorted(m.name for m in pkgutil.iter_modules(here) if m.name != "measure")


def measure(
    name: str, wanted: dict[str, list[Ask]], theirs: dict[str, float], rounds: int
) -> list[Row]:
    """A row for each set of requests; `theirs` are transformers' tokens a second by row name.

    An adapter has PACKAGE, INSTALL (what to give pip) and `open(folder, work)`, which returns a
    call from requests to `Answered`. Adapters run after the others, not in turns with them.
    """
    adapter = importlib.import_module(f"workbench.benches._peers.{name}")
    start: Row = {"engine": name.replace("_", "-"), "dtype": "float32"}
    if importlib.util.find_spec(adapter.PACKAGE) is None:
        why = f"not installed (pip install {adapter.INSTALL})"
        return [{"name": row, **start, "missing": why} for row in wanted]
    with tempfile.TemporaryDirectory() as folder:
        return _rows(adapter, Path(folder), start, wanted, theirs, rounds)


def _rows(
    adapter: ModuleType,
    folder: Path,
    start: Row,
    wanted: dict[str, list[Ask]],
    theirs: dict[str, float],
    rounds: int,
) -> list[Row]:
    checkpoint, work = folder / "checkpoint", folder / "work"
    work.mkdir()
    _write(checkpoint)
    answer = adapter.open(checkpoint, work)
    rows = []
    for name, asks in wanted.items():
        answer([Ask(ask.prompt, 4) for ask in asks])
        rate = median(answer(asks).rate(len(asks) == 1) for _ in range(rounds))
        ratio = rate / theirs[name]
        rows.append(
            {"name": name, **start, "tokens_per_second": rate, "ratio_to_transformers": ratio}
        )
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
