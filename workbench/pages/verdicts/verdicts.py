"""Verdicts of a study's claims, computed beside the page in one thread, newest settings first."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.core.config import Config
from engine.core.errors import BadInput
from engine.core.log import Log
from workbench.study import Claim, Outcome, Study, judge


@dataclass(frozen=True)
class Standing:
    """Where one claim stands: waiting, checking, judged, or failed (then `fault` says how)."""

    claim: Claim
    state: str = "unchecked"
    outcome: Outcome | None = None
    fault: str = ""
    config: Config | None = None  # what it was judged for
    fast: bool = True


class Verdicts:
    """Judges claims when asked. `version` grows with every change; readers look at it."""

    def __init__(self, study: Study, seed: int = 0) -> None:
        self.study, self.seed = study, seed
        self.standings: dict[str, Standing] = {c.id: Standing(c) for c in study.claims}
        self.version = 0
        self._waiting: list[tuple[str, Config, bool]] = []
        self._lock = threading.Lock()
        self._busy = False
        self._closed = self._stopped = False

    def ask(self, config: Config, claim: str = "", fast: bool = True) -> None:
        """Judge one claim (or, with "", all of them) for `config`; returns at once."""
        wanted = [claim] if claim else list(self.standings)
        with self._lock:
            for id in wanted:
                self._waiting = [w for w in self._waiting if w[0] != id]
                self._waiting.append((id, config, fast))
                self._set(id, state="waiting", config=config, fast=fast)
            if not self._busy and not self._closed:
                self._busy = True
                threading.Thread(target=self._work, daemon=True, name="claims").start()

    @property
    def left(self) -> int:
        """Claims that wait or are being judged."""
        return sum(each.state in ("waiting", "checking") for each in self.standings.values())

    def stop(self) -> None:
        """Judge none of those that wait, and the one under way only as far as its next run."""
        with self._lock:
            for id, _, _ in self._waiting:
                was = self.standings[id]
                self._set(id, state="judged" if was.outcome else "unchecked", config=was.config)
            self._waiting.clear()
            self._stopped = self._busy

    def _set(self, id: str, **changes: Any) -> None:
        before = self.standings[id]
        fields = {"outcome": before.outcome, "fault": "", **changes}
        self.standings[id] = Standing(before.claim, **fields)
        self.version += 1

    def _next(self) -> tuple[str, Config, bool] | None:
        with self._lock:
            if self._closed or not self._waiting:
                self._busy = False
                return None
            id, config, fast = self._waiting.pop(0)
            self._stopped = False
            self._set(id, state="checking", config=config, fast=fast)
            return id, config, fast

    def _work(self) -> None:
        each = self.study.run_config(self.seed)

        def run(config: Config) -> Log:
            if self._stopped or self._closed:
                raise BadInput("stopped")
            return each(config)

        while (found := self._next()) is not None:
            id, config, fast = found
            verdict = _judge(self.standings[id].claim, config, run, fast)
            with self._lock:
                if self._stopped and verdict["state"] == "failed":
                    verdict = {"state": "judged" if self.standings[id].outcome else "unchecked"}
                self._set(id, config=config, fast=fast, **verdict)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._waiting.clear()


def _judge(claim: Claim, config: Config, run: Any, fast: bool) -> Mapping[str, Any]:
    try:
        return {"state": "judged", "outcome": judge(claim, config, run, fast)}
    except BadInput as fault:
        return {"state": "failed", "fault": str(fault)}
    except Exception as fault:  # a check that breaks is shown as broken; the page lives on
        return {"state": "failed", "fault": f"the check broke: {type(fault).__name__}: {fault}"}
