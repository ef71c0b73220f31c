"""Outcomes of claims' checks, kept for a session of pytest: a check that a notebook's cell has made
is not made again by the claim's own test, in whichever worker that runs, nor the other way round.

Only what comes out the same each time: claims that measure no time, run with seed 0, under one and
the same config at one size.
"""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from engine.core.config import Config, to_dict
from workbench.study import Claim, Outcome, RunConfig, Study


class Outcomes:
    """Those that lie in `folder`, which workers share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def of(self, slug: str, claim: Claim, config: Config, run: RunConfig, fast: bool) -> Outcome:
        """What the claim's check says of this config; asked where nobody has asked before."""
        if claim.timed:
            return claim.check(config, run, fast)
        words = json.dumps([slug, claim.id, to_dict(config), fast], sort_keys=True)
        place = self.folder / hashlib.blake2b(words.encode(), digest_size=16).hexdigest()
        if place.exists():
            return msgspec.msgpack.decode(place.read_bytes(), type=Outcome)
        found = claim.check(config, run, fast)
        begun = place.with_suffix(f".{os.getpid()}")
        begun.write_bytes(msgspec.msgpack.encode(found, enc_hook=_plain))
        begun.replace(place)  # whole, for whoever looks meanwhile
        return found

    def asked(self, study: Study) -> Study:
        """The same study, its claims asked by way of these."""

        def shared(claim: Claim) -> Claim:
            return replace(claim, check=lambda *given: self.of(study.slug, claim, *given))

        return replace(study, claims=tuple(map(shared, study.claims)))


def _plain(number: Any) -> Any:
    """A number of NumPy's as Python's."""
    return number.item()
