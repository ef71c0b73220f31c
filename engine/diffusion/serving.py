"""The serving engine of a diffusion run: its executor, and the prompts of a list task as requests.

A trained model runs over the engine's pages. Whatever else is asked (the joint itself, a model that
is wrong on purpose) says by itself what may stand at each place, in the model's stead.
"""

from collections.abc import Sequence

import numpy as np

from engine.core.clock import counted
from engine.diffusion.joints import LONGEST, VOCAB, Joint
from engine.diffusion.model import SHIPPED, Masked, Predictor
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Executor, Facts
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.policies.admission import Reserve
from engine.inference.requests.step import Result, Step
from engine.models.model import Model

PAGE = 4  # tokens
CONTEXT = 4 + 2 * LONGEST  # of the longest prompt and answer


def serving(texts: int, at_once: int, seed: int) -> InferenceConfig:
    """An engine with room for `at_once` of `texts` texts."""
    running = min(texts, at_once)
    return InferenceConfig(
        seed=seed, page_size=PAGE, pages=running * CONTEXT // PAGE, max_running=running,
        step_tokens=running * CONTEXT, admission=Reserve(),  # no text ever grows
    )  # fmt: skip


def executor_of(config: InferenceConfig, predict: Predictor, joints: Sequence[Joint]) -> Executor:
    """What says what may stand at the masks behind these prompts."""
    if isinstance(predict, Masked) and not predict.causal:
        return executor_for(config, Model(predict.config, predict.weights), SHIPPED)
    return Predicted(predict, joints)


class Predicted:
    """An executor without pages: a predictor says what may stand at each block of masks."""

    def __init__(self, predict: Predictor, joints: Sequence[Joint]) -> None:
        self.predict = predict
        self.joints = {joint.prompt.astype(np.int32).tobytes(): joint for joint in joints}
        self.facts = Facts(
            type(predict).__name__.lower(), "cpu", VOCAB, CONTEXT, 1, 1, 0.0, both_ways=True
        )

    def execute(self, step: Step) -> Result:
        """Nothing but blocks of masks."""
        began = counted()
        result = Result(np.zeros(0, np.int32), np.zeros(0, np.float32), 0.0)
        for row in step.rows_B.tolist():
            request, prompt = step.requests[row], int(step.rows.prompt[row])
            assert request.canvas is not None
            text_L = step.rows.tokens[row, prompt : step.rows.known[row]].astype(np.int64)
            joint = self.joints[request.prompt.tobytes()]
            said_1LV = self.predict(joint, text_L[None], request.canvas.revealed_L[None])
            result.canvases[row] = said_1LV[0]
        result.seconds = counted() - began
        return result

    def copy_seconds(self, pages_R: np.ndarray) -> float:
        """There are no pages."""
        return 0.0
