"""Verdicts of a study's claims, computed beside the page in one thread, newest settings first."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from engine.core.config import Config
from engine.core.errors import BadInput
from engine.core.log import Log
from widgets.theme import figure
from workbench.study import Claim, Outcome, Study, judge


@dataclass(frozen=True)
class Standing:
    """Where one claim stands: waiting, checking, judged, or failed (then `fault` says how).

    `config`, `fast`: what it is, or was last, judged for; `judged_for`: what `outcome` came from.
    """

    claim: Claim
    state: str = "unchecked"
    outcome: Outcome | None = None
    fault: str = ""
    config: Config | None = None
    fast: bool = True
    judged_for: Config | None = None


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
        self._took: dict[tuple[str, bool], float] = {}  # seconds of a check, by claim and size
        self._since = 0.0  # `perf_counter` as the check under way began

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

    def pace(self) -> str:
        """In words: how long what is left to judge will take, as far as earlier checks tell; where
        none does, how long the one under way has taken. "" where nothing is."""
        with self._lock:
            asked = [(id, fast) for id, _, fast in self._waiting]
            now = [(id, s.fast) for id, s in self.standings.items() if s.state == "checking"]
            if not now and not asked:
                return ""
            so_far = perf_counter() - self._since if now else 0.0
            guessed = [self._guess(each) for each in (*now, *asked)]
        known = [seconds for seconds in guessed if seconds is not None]
        if len(known) < len(guessed):
            return f"{figure(round(so_far), 's')} so far"
        rest = known[0] - so_far
        left = (rest if rest > 0 else so_far) + sum(
            known[1:]
        )  # late: as long again, for all we know
        return f"{figure(round(left), 's')} left" if left >= 1 else "under 1 s left"

    def _guess(self, asked: tuple[str, bool]) -> float | None:
        """Seconds of a check: its own last time, else the mean of others of its size."""
        alike = [took for (_, fast), took in self._took.items() if fast == asked[1]]
        return self._took.get(asked, sum(alike) / len(alike) if alike else None)

    def stop(self) -> None:
        """Judge none of those that wait, and the one under way only as far as its next run."""
        with self._lock:
            for id, _, _ in self._waiting:
                was = self.standings[id]
                self._set(id, state="judged" if was.outcome else "unchecked", config=was.judged_for)
            self._waiting.clear()
            self._stopped = self._busy

    def _set(self, id: str, **changes: Any) -> None:
        before = self.standings[id]
        kept = {"outcome": before.outcome, "judged_for": before.judged_for, "fault": ""}
        self.standings[id] = Standing(before.claim, **{**kept, **changes})
        self.version += 1

    def _next(self) -> tuple[str, Config, bool] | None:
        with self._lock:
            if self._closed or not self._waiting:
                self._busy = False
                return None
            id, config, fast = self._waiting.pop(0)
            self._stopped = False
            self._set(id, state="checking", config=config, fast=fast)
            self._since = perf_counter()
            return id, config, fast

    def _work(self) -> None:
        each = self.study.run_config(self.seed)

        def run(config: Config) -> Log:
            if self._stopped or self._closed:
                raise BadInput("stopped")
            return each(config)

        while (found := self._next()) is not None:
            id, config, fast = found
            verdict = _judge(self.standings[id].claim, config, run, fast, self.study.config)
            with self._lock:
                if self._stopped and verdict["state"] == "failed":
                    was = self.standings[id]
                    verdict = {"state": "judged" if was.outcome else "unchecked"}
                    config = was.judged_for or config
                elif verdict["state"] == "judged":
                    self._took[id, fast] = perf_counter() - self._since
                    verdict = {**verdict, "judged_for": config}
                self._set(id, config=config, fast=fast, **verdict)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._waiting.clear()


def _judge(claim: Claim, config: Config, run: Any, fast: bool, own: Config) -> Mapping[str, Any]:
    try:
        return {"state": "judged", "outcome": judge(claim, config, run, fast, own)}
    except BadInput as fault:
        return {"state": "failed", "fault": str(fault)}
    except Exception as fault:  # a check that breaks is shown as broken; the page lives on
        return {"state": "failed", "fault": f"the check broke: {type(fault).__name__}: {fault}"}
