"""Samples of one prompt and forks of a running request."""

from engine.core.events import Branch, Page, Span, Token
from tests.engine.inference.small import engine, request, serve, states


def test_samples_fork_after_the_prompt_and_share_its_pages():
    held, events = engine(pages=200)
    one = request(21, n=4, temperature=1.0, max_tokens=12)
    serve(held, [one])
    threads = {e.thread for e in events if isinstance(e, Branch) and e.state == "finished"}
    assert threads == {"r0", "r0.1", "r0.2", "r0.3"}
    assert [e.tag for e in events if isinstance(e, Span) and e.name == "prefill"] == ["0:21"]
    assert sum(isinstance(e, Page) and e.state == "share" for e in events) == 3 * 6
    assert sum(isinstance(e, Page) and e.state == "copy" for e in events) == 3
    said = {t: [e.text for e in events if isinstance(e, Token) and e.thread == t] for t in threads}
    assert len({tuple(text) for text in said.values()}) == 4


def test_a_fork_goes_on_from_where_its_parent_is():
    held, events = engine()
    one = request(10, 1, max_tokens=12)
    held.add(one)
    for _ in range(5):
        held.step()
    child = held.fork("r0")
    forked = None
    while held.step():
        forked = forked or held.requests.get(child)
    assert child == "r0.1" and forked is not None
    assert forked.generated.tolist() == one.generated.tolist(), "greedy forks say the same"
    assert states(events, child) == ["queued", "running", "finished"]
    assert next(e for e in events if isinstance(e, Branch) and e.thread == child).parent == "r0"


def test_a_fork_without_room_waits_and_says_the_same():
    held, _ = engine(max_running=1)
    one = request(10, 1, max_tokens=12)
    held.add(one)
    for _ in range(5):
        held.step()
    child = held.fork("r0")
    held.step()
    forked = held.requests[child]
    assert forked.state == "queued"
    held.run()
    assert forked.generated.tolist() == one.generated.tolist()


def test_more_samples_than_can_run_are_rejected():
    held, _ = engine(max_running=2)
    one = request(6, n=3)
    serve(held, [one])
    assert one.state == "rejected" and one.reason == "asks for 3 samples, 2 can run"


def test_an_id_can_be_used_again_while_an_earlier_sample_still_runs():
    held, events = engine(pages=200)
    for _ in range(2):
        one = request(9, 1, n=2, max_tokens=6)
        one.id = "mine"
        held.add(one)
        while not one.over:
            held.step()
        forked = held.fork("mine")
        assert forked not in held.requests
    held.run()
    ends = [e.thread for e in events if isinstance(e, Branch) and e.state == "finished"]
    assert sorted(ends) == ["mine", "mine", "mine.1", "mine.1"]
