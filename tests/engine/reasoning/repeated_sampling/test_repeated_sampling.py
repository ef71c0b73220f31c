"""Repeated sampling through the engine: every sample is judged, prompts shared, seeds decide."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Blob, Branch, Mark, Token
from engine.core.log import Log
from engine.core.measure import serving
from engine.core.paths import dataset
from engine.core.run import Run
from engine.reasoning.repeated_sampling.repeated_sampling import RepeatedSamplingConfig
from engine.reasoning.repeated_sampling.verifiers import Checker, Noisy, Readable
from engine.tasks.arithmetic import Arithmetic
from workbench.studies.reasoning._large_language_monkeys import run

SMALL = RepeatedSamplingConfig(task=Arithmetic(left=2, right=2), problems=5, samples=8)


def sampled(**changes: object) -> Log:
    return Run.execute(run, update(SMALL, changes)).log


@pytest.fixture(scope="module")
def log() -> Log:
    return sampled()


def test_every_sample_is_judged_by_what_it_said(log: Log) -> None:
    said: dict[str, str] = {}
    for token in log.of(Token):
        said[token.thread] = said.get(token.thread, "") + token.text
    marks = [mark for mark in log.of(Mark) if mark.name in ("right", "wrong")]
    assert len(marks) == len(said) == 40
    problems = list(SMALL.task.problems("test", 5))
    for mark in marks:
        problem = problems[int(mark.lane.partition(".")[0][1:])]
        assert (mark.name == "right") == problem.check(said[mark.lane]).right
    assert log.blobs["right_PN"].shape == (5, 8)
    assert log.blobs["right_PN"].sum() == sum(mark.name == "right" for mark in marks)


def test_samples_of_a_problem_fork_from_one_prompt(log: Log) -> None:
    prompts = [problem.prompt for problem in SMALL.task.problems("test", 5)]
    assert serving(log).prefilled == sum(len(prompt) + 1 for prompt in prompts)  # and BOS
    parents = {branch.parent for branch in log.of(Branch) if branch.parent}
    assert parents == {f"p{n}" for n in range(5)}
    apart = sampled(fork=False, prefix_sharing=False)
    assert serving(apart).prefilled == 8 * serving(log).prefilled


def test_the_same_seed_samples_the_same_and_another_does_not(log: Log) -> None:
    assert np.array_equal(log.blobs["answer_PN"], sampled().blobs["answer_PN"])
    assert not np.array_equal(log.blobs["answer_PN"], sampled(seed=1).blobs["answer_PN"])


def test_without_temperature_all_samples_are_one() -> None:
    answers_PN = sampled(temperature=0.0, samples=4).blobs["answer_PN"]
    assert (answers_PN == answers_PN[:, :1]).all()


def test_curves_are_told_while_samples_come_in(log: Log) -> None:
    names = [blob.name for blob in log.of(Blob)]
    assert names.count("curve/solved/coverage") > 2
    assert {"curve/solved/majority vote", "curve/solved/chosen by the verifier"} <= set(names)
    assert all(blob.ref in log.blobs for blob in log.of(Blob))


def test_the_log_is_in_time_order(log: Log) -> None:
    times = [event.time for event in log]
    assert times == sorted(times)


def test_verifiers_accept_what_they_say() -> None:
    problem = SMALL.task.problem("test", 0)
    assert Checker().accepts(problem, problem.answer) and not Checker().accepts(problem, "1")
    assert Readable().accepts(problem, "1") and not Readable().accepts(problem, "x")
    wrong = [str(number) for number in range(2000) if str(number) != problem.answer]
    passed = sum(Noisy(false_accept=0.2).accepts(problem, text) for text in wrong)
    assert 0.15 < passed / len(wrong) < 0.25
    assert Noisy().accepts(problem, problem.answer)
    assert not Noisy(false_refuse=1.0).accepts(problem, problem.answer)


def test_a_model_without_words_is_refused(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        shutil.copy(dataset(f"models/{SMALL.model}/{name}"), tmp_path)
    with pytest.raises(BadInput, match="no tokenizer"):
        sampled(model=str(tmp_path))
