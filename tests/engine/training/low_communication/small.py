"""A job that takes a moment, and its replicas' weights after it."""

from typing import Any

import torch

from engine.core.config import update
from engine.core.log import Log
from engine.core.run import Live, Run
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.in_process_runtime import InProcessRuntime
from engine.training.low_communication.job import trainee
from engine.training.low_communication.run import run
from engine.training.low_communication.text import shipped_text

SMALL = {
    "replicas": 2, "steps": 12, "report": 6, "learning.rows": 1, "learning.context": 32,
    "learning.hidden": 16, "learning.layers": 1, "learning.judged": 128, "learning.warmup": 2,
    "learning.decay": 2, "beside": False,
}  # fmt: skip


def small(**changes: Any) -> LowCommunicationConfig:
    return update(update(LowCommunicationConfig(), SMALL), changes)


def log_of(config: LowCommunicationConfig) -> Log:
    return Run.execute(run, config).log


def replicas_of(config: LowCommunicationConfig) -> list:
    """The trainees after an in-process run."""
    text = shipped_text()
    trainees = [trainee(config.job(0), rank, text) for rank in range(config.replicas)]
    live = Live(Log())
    InProcessRuntime([each.program() for each in trainees], live.emit, lambda now: None).run()
    return trainees


def weights(config: LowCommunicationConfig) -> list[torch.Tensor]:
    return [each.replica.weights_P for each in replicas_of(config)]
