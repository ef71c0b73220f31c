"""Pruned traces on the shipped model: clusters, freed pages, votes, and what cannot be done."""

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Level, Mark, Page, Token
from engine.core.log import Log
from engine.core.run import Live, Run
from engine.reasoning.pruning.pruning import PruningConfig, finished_traces, run
from engine.reasoning.solving.scores import scores_of
from engine.reasoning.threads.loaded_model import open_model
from workbench.studies._read import votes, written
from workbench.studies.reasoning._deepprune import flops

SMALL = update(
    PruningConfig(),
    {"problems": 2, "traces": 6, "after": 30, "judge": "oracle", "keep": 1, "pages": 512},
)


def pruned(**changes: object) -> Log:
    return Run.execute(run, update(SMALL, changes)).log


@pytest.fixture(scope="module")
def log() -> Log:
    return pruned()


@pytest.fixture(scope="module")
def everyone() -> Log:
    return pruned(after=0)


def problems(config: PruningConfig = SMALL) -> list:
    return list(config.task.problems("test", config.problems, config.first))


def test_what_goes_on_ends_as_it_would_have_and_what_repeats_it_is_pruned(
    log: Log, everyone: Log
) -> None:
    for ours, all_ in zip(written(log, problems()), written(everyone, problems()), strict=True):
        assert [one.name for one in ours] == [one.name for one in all_]
        seen = set()
        for one, whole in zip(ours, all_, strict=True):
            if whole.answer in seen:
                assert one.state == "pruned"
                assert one.pieces == whole.pieces[: len(one.pieces)]
                assert len(one.pieces) in (30, 31)  # the first thread is a token ahead
            else:
                assert one.state == "finished"
                assert one.pieces == whole.pieces
            seen.add(whole.answer)


def test_pruning_is_told_by_a_branch_and_a_reason_and_frees_pages(log: Log) -> None:
    pruned_at = {b.thread: b.time for b in log.of(Branch) if b.state == "pruned"}
    assert pruned_at
    reasons = {m.lane: m.text for m in log.of(Mark) if m.name == "prune"}
    for name, time in pruned_at.items():
        assert "sure to agree with p" in reasons[name]
        dropped = [p for p in log.of(Page) if p.owner == name and p.state == "drop"]
        assert dropped
        assert all(page.time <= time + 1e-3 for page in dropped)
        assert not [t for t in log.of(Token) if t.thread == name and t.time > time]
    used = [e.value for e in log.of(Level) if e.lane == "threads" and e.name == "pages_used"]
    assert max(used) > used[-1]


def test_the_prompt_is_computed_once_and_shared(log: Log) -> None:
    shared = [page for page in log.of(Page) if page.state == "share"]
    assert shared
    parents = {b.thread: b.parent for b in log.of(Branch) if b.parent}
    assert set(parents.values()) == {"p0", "p1"}
    assert len(parents) == 2 * 5
    prompts = [len(problem.prompt + SMALL.ask) for problem in problems()]  # a token a character
    (*_, saved) = (e.value for e in log.of(Level) if e.name == "tokens_saved")
    assert 5 * (min(prompts) - 9) * 2 <= saved <= 5 * sum(prompts), "pruned forks saved theirs too"


def test_traces_let_finish_unseen_are_those_of_a_run_that_prunes_nothing(everyone: Log) -> None:
    asked = list(SMALL.asked())
    unseen = finished_traces(SMALL, open_model(SMALL.reasoning()), asked)
    for traces, threads in zip(unseen, written(everyone, problems()), strict=True):
        assert [(t.name, len(t.tokens)) for t in traces] == [
            (t.name, len(t.pieces)) for t in threads
        ]
        assert [t.answer for t in traces if t.answer] == [t.answer for t in threads if t.answer]


def test_votes_and_scores_are_those_of_the_task(log: Log) -> None:
    for problem, (name, (answer, right)) in zip(problems(), votes(log).items(), strict=True):
        assert right == problem.check(f"={answer};").right
        number = int(name[1:])
        assert scores_of(log)["right"][number] == right
        said = [len(one.pieces) for one in written(log, problems())[number]]
        assert scores_of(log)["tokens"][number] == sum(said)
        assert scores_of(log)["tokens by thread"][number].tolist() == said
    done = [e.value for e in log.of(Level) if e.lane == "problems" and e.name == "done"]
    assert done == [1, 2]


def test_a_vote_counts_whole_clusters_or_what_is_left_of_them() -> None:
    one = pruned(**{"judge": "shared_prefix", "clustering.threshold": 0.0, "problems": 1})
    assert (scores_of(one)["cluster by thread"] == 0).all()
    ended = [w.answer for w in written(one, problems()[:1])[0] if w.state == "finished"]
    assert len(ended) == 1
    assert votes(one)["p0"][0] == ended[0]


def test_surface_judges_cost_no_flops_and_all_is_counted_in_the_log(log: Log) -> None:
    thought, judged = flops(log)
    assert thought > 0 and judged == 0
    comparisons = scores_of(log)["comparisons"]
    assert (comparisons >= SMALL.traces - 1).all()


@pytest.mark.parametrize("place", [0, 3])
def test_a_person_may_kill_a_thread_before_it_is_judged(place: int) -> None:
    name = "p0" if not place else f"p0.{place}"

    def driver(config: PruningConfig, live: Live) -> None:
        polled = live.poll

        def poll(now: float) -> list[dict]:
            told.append(now)
            return [{"kill": name}] if len(told) == 12 else polled(now)

        told: list[float] = []
        live.poll = poll  # type: ignore[method-assign]
        run(config, live)

    log = Run.execute(driver, update(SMALL, {"problems": 1})).log
    assert scores_of(log)["cluster by thread"][0, place] == -1
    assert (scores_of(log)["cluster by thread"][0] >= 0).sum() == SMALL.traces - 1
    assert votes(log)["p0"][0]


def test_questions_wait_for_room_and_every_one_gets_all_its_threads() -> None:
    log = pruned(threads=13, problems=3, after=0, longest=12)
    assert not [m for m in log.of(Mark) if m.name == "refuse"]
    config = update(SMALL, {"problems": 3})
    assert [len(threads) for threads in written(log, problems(config))] == [6, 6, 6]
    running = [e.value for e in log.of(Level) if e.lane == "threads" and e.name == "threads"]
    assert max(running) == 12


def test_too_few_pages_end_some_threads_and_the_others_vote() -> None:
    log = pruned(pages=24, problems=1)
    assert any(m.name == "refuse" for m in log.of(Mark)) or any(
        b.state == "aborted" for b in log.of(Branch)
    )
    assert log.closed.reason == "finished"
    assert len(scores_of(log)["right"]) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traces": 0}, "traces"),
        ({"longest": 0}, "longest"),
        ({"keep": 0}, "keep"),
        ({"clustering.threshold": 1.5}, "threshold"),
    ],
)
def test_no_traces_no_tokens_no_budget_are_refused_in_words(changes: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        update(SMALL, changes)


def test_a_model_without_the_judges_words_is_refused() -> None:
    with pytest.raises(BadInput, match="does not know"):
        pruned(**{"judge": "trained", "judge.model": "multiply-1m"})


def test_a_prompt_beyond_the_context_is_refused() -> None:
    with pytest.raises(BadInput, match="the model takes"):
        pruned(ask="1" * 400)
