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
from workbench.benches._decode_work import SEED, SHAPE, Ask, model_config

Row = dict[str, Any]


def names() -> list[str]:
    """Every adapter, by file name."""
    here = [str(Path(__file__).parent)]
    found = (module.name for module in pkgutil.iter_modules(here))
    return sorted(name for name in found if name != "measure" and not name.startswith("_"))


def measure(
    name: str, wanted: dict[str, list[Ask]], theirs: dict[str, float], rounds: int
) -> list[Row]:
    """A row for each set of requests; `theirs` are transformers' tokens a second by row name.

    An adapter has PACKAGE, INSTALL (what to give pip) and `open(folder, work)`, in whose context
    there is a call from requests to `Answered`. A peer that is absent or does not start gives one
    row that says so. Adapters run after the others, not in turns with them.
    """
    adapter = importlib.import_module(f"workbench.benches._peers.{name}")
    start: Row = {"engine": name.replace("_", "-"), "dtype": "float32"}
    if importlib.util.find_spec(adapter.PACKAGE) is None:
        why = f"not installed (pip install {adapter.INSTALL})"
        return [{"name": ", ".join(wanted), **start, "missing": why}]
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _rows(adapter, Path(folder), start, wanted, theirs, rounds)
    except BadInput as fault:
        return [{"name": ", ".join(wanted), **start, "missing": str(fault)}]


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
    rows = []
    with adapter.open(checkpoint, work) as answer:
        for name, asks in wanted.items():
            answer([Ask(ask.prompt, 4) for ask in asks])
            rate = median(answer(asks).rate(len(asks) == 1) for _ in range(rounds))
            facts = {"tokens_per_second": rate, "ratio_to_transformers": rate / theirs[name]}
            rows.append({"name": name, **start, **facts})
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
