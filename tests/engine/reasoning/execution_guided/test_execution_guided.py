"""Programs written line by line: candidates are forks, each line has its signal, runs repeat."""

from collections.abc import Callable

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Mark, Span, Token
from engine.core.log import Log
from engine.core.run import Run
from engine.reasoning.execution_guided.config import ExecutionGuidedConfig
from engine.reasoning.execution_guided.execution_guided import run
from engine.reasoning.repeated_sampling.verifiers import Checker, Examples
from engine.reasoning.solving.scores import scores_of
from engine.recipes.folder import write_model
from engine.recipes.from_examples.list_programs import RECIPE
from engine.tasks.arithmetic import Arithmetic
from engine.tasks.list_programs import ListPrograms
from engine.training.losses.language import fresh_weights

SMALL = ExecutionGuidedConfig(problems=4, first=500)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Log]:
    """A run by a random model of the task's words: what it writes mostly cannot be run."""
    folder, tokenizer = tmp_path_factory.mktemp("writer"), RECIPE.tokenizer()
    shape = update(RECIPE, {"hidden": 32, "layers": 1, "heads": 2, "kv_heads": 2, "width": 64})
    config = shape.llama(tokenizer.get_vocab_size())
    write_model(folder, config, fresh_weights(config, 0), tokenizer)
    return lambda **changes: Run.execute(run, update(SMALL, {"model": str(folder), **changes})).log


@pytest.fixture(scope="module")
def log(written: Callable[..., Log]) -> Log:
    return written()


def marks(log: Log, name: str) -> list[Mark]:
    return [mark for mark in log.of(Mark) if mark.name == name]


def test_candidates_fork_from_one_request_under_the_programs_lane(log: Log) -> None:
    parents = {branch.thread: branch.parent for branch in log.of(Branch) if branch.parent}
    assert parents
    for thread, parent in parents.items():
        assert thread.rpartition(".")[0] == parent or parent == thread.partition(".")[0]
    first = [name for name in parents if name.startswith("p0.1")]
    assert len(first) == SMALL.candidates


def test_every_candidate_is_read_and_kept_or_read_and_not(log: Log) -> None:
    last = {branch.thread: branch for branch in log.of(Branch)}
    outcomes = {mark.lane: mark.text for mark in marks(log, "outcome")}
    lanes = [name for name in last if "." in name]
    assert set(outcomes) == set(lanes)
    for name in lanes:
        assert last[name].state in ("joined", "pruned")
        kept = last[name].why.partition("kept: ")[2]
        own = outcomes[name].partition(" → ")[0]
        assert (last[name].state == "joined") == (own == kept)


def test_each_line_has_a_signal_and_a_run_in_the_sandbox(log: Log) -> None:
    runs = [span for span in log.of(Span) if span.lane == "sandbox"]
    assert len(runs) == len(marks(log, "signal")) >= len(marks(log, "kept"))
    assert all("candidates=" in span.tag for span in runs)
    for mark in marks(log, "signal"):
        assert mark.text.startswith("#0 ")


def test_verdicts_are_of_the_program_kept(log: Log) -> None:
    problems = dict(SMALL.drawn())
    answers = {mark.lane: mark.text for mark in marks(log, "answer")}
    for mark in marks(log, "verdict"):
        program = answers[mark.lane].replace("; ", "\n")
        right = problems[int(mark.lane[1:])].check("" if program == "none" else program).right
        assert mark.text.startswith("right" if right else "wrong")


def test_a_seed_is_a_run_and_another_draws_other_candidates(
    log: Log, written: Callable[..., Log]
) -> None:
    told = [mark.text for mark in marks(log, "outcome")]
    assert [mark.text for mark in marks(written(), "outcome")] == told
    assert [mark.text for mark in marks(written(seed=1), "outcome")] != told


def test_what_it_took_is_counted(log: Log) -> None:
    scores = scores_of(log)
    tokens = sum(1 for _ in log.of(Token))
    assert scores["generated"].sum() == tokens
    prefilled = sum(
        int(span.tag.split(":")[1]) - int(span.tag.split(":")[0])
        for span in log.of(Span)
        if span.name == "prefill"
    )
    requests = sum(branch.state == "finished" for branch in log.of(Branch))
    own = prefilled + tokens - requests  # of the rows with the signal
    assert scores["positions"].sum() >= own
    assert np.all(scores["runs"] % 2 == 0)


def test_plain_decoding_is_one_request_that_runs_nothing(written: Callable[..., Log]) -> None:
    log = written(guided=False)
    assert not marks(log, "signal") and not scores_of(log)["runs"].any()
    assert {token.thread for token in log.of(Token)} == {f"p{n}" for n in range(4)}


def test_without_candidates_the_signal_has_the_values_alone(written: Callable[..., Log]) -> None:
    log = written(candidates=0)
    assert all(mark.text.count("\n") == 1 for mark in marks(log, "signal"))
    assert all("." not in branch.thread for branch in log.of(Branch))


def test_candidates_have_no_more_lines_than_the_horizon(written: Callable[..., Log]) -> None:
    log = written(horizon=1)
    assert all(mark.text.count("→") <= 1 for mark in marks(log, "outcome"))


def test_a_line_of_a_persons_is_tried_with_the_others(written: Callable[..., Log]) -> None:
    log = written(also="x = sorted(x)")
    own = [mark for mark in marks(log, "outcome") if mark.lane.endswith(".also")]
    assert len(own) == len(marks(log, "signal"))
    assert all(mark.text.startswith("x = sorted(x) → ") for mark in own)
    refused = written(also="import os; os.system('true')", problems=1)
    assert all("Refused Refused" in mark.text for mark in marks(refused, "signal"))


def test_a_model_of_other_words_writes_what_does_not_run_and_the_run_ends(
    written: Callable[..., Log],
) -> None:
    log = written(model="multiply-1m", problems=1)
    assert len(marks(log, "verdict")) == 1


def test_a_fault_of_guidance_is_one_of_knobs() -> None:
    with pytest.raises(BadInput, match="fault"):
        update(SMALL, {"fault": "nothing"})


def test_a_verifier_of_examples_accepts_what_passes_those_shown() -> None:
    problem = ListPrograms().problem("test", 3)
    assert Examples().accepts(problem, problem.answer)
    assert not Examples().accepts(problem, "x = x[9]")
    product = Arithmetic().problem("test", 3)
    assert Examples().accepts(product, product.answer) and not Examples().accepts(product, "1")
    assert Checker().accepts(problem, problem.answer)
