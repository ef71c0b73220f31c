"""Preflight of a training: what it asks for, looked at before anything heavy is imported: is there
a tokenizer for a text, and was the very same training finished already."""

import json
from pathlib import Path
from typing import Any

from engine.core.config import to_dict
from engine.core.errors import BadInput
from engine.core.limits import (
    file_digest,
    inside,
    parse_json,
    read_bytes,
    require_regular,
    sampled_digest,
)
from engine.core.paths import datasets

# What changes nothing that is learnt.
WHERE = ("parallel", "device", "threads", "limit", "port", "ray", "fault")
ZERO = "parallel.zero"
ZEROS = {"0": "nothing", "1": "optimizer", "2": "gradients", "3": "weights"}  # stages as numbered
TOKENS = (".npy", ".bin")  # files of token ids; any other name is a text


def mesh_of(text: str) -> dict[str, str]:
    """Ranks in each direction, of `tensor=2,pipeline=2`. Raises BadInput."""
    from engine.distributed.mesh import DIRECTIONS

    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, sign, size = part.strip().partition("=")
        if name not in DIRECTIONS or not sign or not size.isdigit() or name in found:
            raise BadInput(
                f"--mesh {text!r}: write NAME=N, each name once, such as tensor=2,pipeline=2; "
                f"names: {', '.join(DIRECTIONS)}"
            )
        found[name] = size
    return found


def full_name(knob: str) -> str:
    """The path of a setting of a training that may be written without where it belongs."""
    from engine.training.loop.settings import Training
    from engine.training.parallel.sharding_config import ShardingConfig

    first = knob.partition(".")[0]
    if first in Training.model_fields:
        return f"training.{knob}"
    return f"parallel.{knob}" if first in ShardingConfig.model_fields else knob


def check_data(data: str, model: str) -> None:
    """Raises BadInput for a file that is not there, and for a text without a tokenizer."""
    place = Path(data).expanduser()
    require_regular(place, "give tokens (.npy, .bin) or a text")
    own = Path(model).expanduser()
    is_shipped = model == own.name and (datasets() / "models" / model).is_dir()
    if place.suffix in TOKENS or is_shipped:
        return
    folder = own.parent if own.is_file() else own
    tokenizers = ("tokenizer.json", "tokenizer.model")
    if model and folder.is_dir() and not any((folder / name).is_file() for name in tokenizers):
        raise BadInput(
            f"{place}: a text, and {folder} holds no tokenizer.json or tokenizer.model to read it "
            "with; put one there, or give token ids (.npy, .bin)"
        )


def finished(config: Any) -> str:
    """What to say where `config.out` holds this very training, done; "" where it does not."""
    done = Path(config.out).expanduser() / "training.json"
    try:
        facts = parse_json(read_bytes(done, "config_bytes"), done)
        told, written = facts["config"], dict(facts.get("written", {}))
        fresher = Path(config.data).expanduser().stat().st_mtime > done.stat().st_mtime
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    asked = json.loads(json.dumps(to_dict(config)))
    if fresher or not isinstance(told, dict) or _learnt(told) != _learnt(asked):
        return ""
    begin = sorted(Path(config.model).expanduser().glob("*.safetensors"))
    told_begin = str(facts.get("begin", ""))  # those written before it was told have none
    if begin and told_begin.startswith("weights") and sampled_digest(begin)[:16] not in told_begin:
        return ""
    from engine.models.families import read_config
    from engine.models.loading.checkpoint import Checkpoint

    try:
        Checkpoint(done.parent, read_config(done.parent))
        if any(file_digest(inside(done.parent, name)) != said for name, said in written.items()):
            return ""
    except (BadInput, OSError):  # the model that was written has gone since, or is damaged
        return ""
    steps = config.training.steps
    return (
        f"finished before: {config.out} holds all {steps} steps of this training; go on with "
        f"--set steps={2 * steps}, or train anew into another folder"
    )


def _learnt(config: dict[str, Any]) -> dict[str, Any]:
    """What of a training decides what is learnt."""
    return {name: value for name, value in config.items() if name not in WHERE}
