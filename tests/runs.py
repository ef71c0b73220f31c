"""Logs of studies' runs, kept for a session of pytest in each worker: a run that several checks, or
a check and a notebook's cell, ask for is made once."""

import json
from dataclasses import replace

from engine.core.config import Config, to_dict
from engine.core.log import Log
from engine.core.run import Live
from workbench.study import RunConfig, Study

EVENTS = 2_000_000  # of all logs that are kept: somewhat over a gigabyte


class Runs:
    """The latest stay in memory: writing and reading a log of many events costs more than most
    runs. A check that asks twice for one config gets two runs: it may be comparing them.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Log] = {}  # the one that was asked for last at the end

    def of(self, chosen: Study) -> RunConfig:
        """What runs a config for one check."""
        run, told = chosen.run_config(), set()

        def run_config(config: Config) -> Log:
            words = _words(chosen, config)
            log = self.kept.pop(words, None)
            if log is None or words in told:
                log = run(config)
            told.add(words)
            self._keep(words, log)
            return log

        return run_config

    def shown(self, chosen: Study) -> Study:
        """The same study, of which a run that a check has made is told once more, not made anew."""

        def driver(config: Config, live: Live) -> None:
            words = _words(chosen, config)
            log = self.kept.get(words) if live.seed == 0 else None
            if log is None or chosen.slug != live.study:
                chosen.driver(config, live)
                return
            live.log.events.extend(log.events[:-1])  # its end is told by whoever drives
            live.log.blobs.update(log.blobs)

        return replace(chosen, driver=driver)

    def _keep(self, words: str, log: Log) -> None:
        self.kept[words] = log
        while sum(map(len, self.kept.values())) > EVENTS and len(self.kept) > 1:
            del self.kept[next(iter(self.kept))]


def _words(chosen: Study, config: Config) -> str:
    return json.dumps([chosen.slug, to_dict(config)], sort_keys=True)
