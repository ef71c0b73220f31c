"""The driver: workers think to their end; a person's commands are obeyed, or refused in words."""

from engine.core.config import update
from engine.core.events import Blob, Branch, Mark, Span, Token, Told
from engine.core.log import Log
from engine.core.run import Live, Run
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.run import run, think
from tests.engine.reasoning.loaded_models import loaded, settings

START = ("queued", "running")


def told(config, *commands):
    """The log of a run that hears these commands before its first step."""
    log = Log()
    live = Live(log)
    live.inbox.extend(commands)
    think(config, loaded(config, words=True), live)
    return log


def ended(log):
    return {b.thread: b.state for b in log.of(Branch) if b.state not in START}


def test_the_shipped_model_thinks_side_by_side():
    config = update(ReasoningConfig(), {"workers": 3, "budget": 6, "fork_at": 2, "join_at": 4})
    log = Run.execute(run, config).log
    assert ended(log) == {
        "alice": "finished", "bob": "finished", "carol": "finished", "alice.1": "joined"
    }  # fmt: skip
    times = [event.time for event in log]
    assert times == sorted(times)
    assert sum(token.thread == "bob" for token in log.of(Token)) == 6
    steps = [span for span in log.of(Span) if span.name == "step"]
    assert len(steps) == 6
    assert all(span.flops > 0 and span.bytes > 0 for span in steps)


def test_what_a_person_says_is_done_and_recorded():
    config = settings(workers=2, budget=6, keep_logits=False)
    log = told(config, {"fork": "alice"}, {"say": ["bob", "go on"]}, {"kill": "bob"})
    assert ended(log) == {"alice": "finished", "bob": "pruned", "alice.1": "finished"}
    assert len(log.of(Told)) == 3
    assert {"fork", "say", "prune"} <= {mark.name for mark in log.of(Mark)}


def test_what_cannot_be_done_is_refused_in_words_and_all_go_on():
    config = settings(workers=2, budget=6, threads=2, keep_logits=False)
    wrong = {"fork": "alice"}, {"join": ["alice", "nobody"]}, {"dance": 1}, {"say": "bob"}
    log = told(config, *wrong)
    said = [mark.text for mark in log.of(Mark) if mark.name == "refuse"]
    assert len(said) == 4
    assert "at most 2 may" in said[0]
    assert "no such thread" in said[1]
    assert all("say fork=thread" in text for text in said[2:])
    assert ended(log) == {"alice": "finished", "bob": "finished"}


def test_the_same_commands_give_the_same_words_again():
    config = settings(workers=2, keep_logits=False, **{"sampling.temperature": 1.0})
    first, again = (told(config, {"fork": "bob"}) for _ in range(2))
    assert [(t.thread, t.text) for t in first.of(Token)] == [
        (t.thread, t.text) for t in again.of(Token)
    ]


def test_more_workers_than_threads_may_run_is_told():
    log = told(settings(workers=4, threads=2, keep_logits=False))
    assert sum(mark.name == "refuse" for mark in log.of(Mark)) == 2
    assert len(ended(log)) == 2


def test_kept_arrays_lie_beside_the_log():
    log = told(settings(workers=2, budget=4))
    names = {blob.name for blob in log.of(Blob)}
    assert names == {
        f"kept/{n}"
        for n in (
            "first",
            "token",
            "place",
            "own",
            "tokens",
            "at",
            "logits",
            "block",
            "index",
            "blocks",
        )
    }
    assert log.blobs["kept/logits"].shape == (len(log.blobs["kept/tokens"]), 97)
