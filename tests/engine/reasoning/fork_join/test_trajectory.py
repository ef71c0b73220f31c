"""Forks and joins as requests: what is sent, what is joined, budgets, and what may go wrong."""

from engine.reasoning.fork_join.trajectory import (
    Ask,
    Limits,
    Marks,
    Reply,
    Trajectory,
    fork_and_join,
)

MARKS = Marks(outlines="[", outlined="]", thread="<", closed=">", joined="!")


class Scripted:
    """Says what the script has for the end of a prompt, newest ask first, a token a character."""

    def __init__(self, script, cut=()):
        self.script, self.cut = script, cut
        self.asked: list[Ask] = []
        self.open: list[Ask] = []

    def ask(self, ask):
        self.asked.append(ask)
        self.open.append(ask)

    def replies(self):
        ask = self.open.pop()
        end = next((end for end in self.script if ask.prompt.endswith(end)), None)
        if end is None:
            return [Reply(ask.name, "", 0, "failed", "no such line")]
        said = self.script[end]
        if said is None:
            return [Reply(ask.name, "", 0, "failed", "answers 500: out of order")]
        reason = "length" if len(said) > ask.tokens or end in self.cut else "stop"
        text = said[: ask.tokens]
        return [Reply(ask.name, text, len(text), reason)]


SCRIPT = {"q": "x[1:a 2:b 3:c", "<1:": "one", "<2:": "second", "<3:": "3", "!": "end"}


def woven(script=SCRIPT, cut=(), **limits):
    told: list[tuple[str, str, str]] = []
    one = Trajectory(
        "p",
        "q",
        Limits(**{"segment": 50, "threads": 8, **limits}),
        MARKS,
        lambda *t: told.append(t),
    )
    service = Scripted(script, cut)
    list(fork_and_join([one], service))
    assert one.over
    return one, service, told


def test_threads_are_joined_in_order_whatever_ends_first():
    one, service, told = woven()
    assert one.said == "x[1:a 2:b 3:c]<1:one><2:second><3:3>!end"
    outlined = "qx[1:a 2:b 3:c]"
    assert [a.prompt for a in service.asked[:4]] == ["q", *(f"{outlined}<{n}:" for n in (1, 2, 3))]
    assert service.asked[4].reads == ("p.1", "p.2", "p.3")
    assert [a.stop for a in service.asked] == ["]", ">", ">", ">", "]"]
    assert not told and not one.fault


def test_the_critical_path_has_the_longest_thread():
    one, _, _ = woven()
    assert one.tokens == 13 + 3 + 6 + 1 + 3
    assert one.critical == 13 + 6 + 3


def test_threads_that_take_turns_wait_for_each_other():
    one, service, _ = woven(together=1)
    assert one.critical == one.tokens
    assert service.asked[2].prompt.endswith("]<2:")  # still no sibling in sight
    two, _, _ = woven(together=2)
    assert two.said == one.said
    assert one.tokens > two.critical >= 13 + 6 + 3


def test_siblings_that_are_not_kept_apart_read_their_elders():
    one, service, _ = woven(apart=False)
    assert service.asked[2].prompt.endswith("]<1:one><2:")
    assert one.critical == one.tokens


def test_a_text_without_outlines_is_one_request():
    one, service, _ = woven({"q": "plain"})
    assert (one.said, len(service.asked), one.forks) == ("plain", 1, 0)


def test_it_may_fork_again_after_a_join():
    script = {"]<1:one>!": "then[1:z", "[1:z]<1:": "late", "<1:late>!": "end", **SCRIPT}
    one, _, _ = woven({**script, "q": "[1:a"})
    assert one.forks == 2
    assert one.said == "[1:a]<1:one>!then[1:z]<1:late>!end"


def test_what_goes_wrong_with_one_thread_leaves_the_others():
    one, _, told = woven({**SCRIPT, "<2:": None})
    assert one.said.endswith("]<1:one><2:><3:3>!end")
    assert told == [("p.2", "fault", "p.2: answers 500: out of order; it says nothing at the join")]
    assert not one.fault


def test_a_thread_that_never_closes_is_closed_for_it():
    one, _, told = woven(cut=("<3:",))
    assert "<3:3>" in one.said
    assert told == [("p.3", "fault", "p.3: not closed within 1 tokens; closed for it")]


def test_threads_beyond_the_limit_are_left_out_and_told():
    one, service, told = woven(threads=2)
    assert one.said.endswith("]<1:one><2:second>!end")
    assert told == [("p", "refuse", "a fork may have 2 threads; without 3")]
    assert len(service.asked) == 4


def test_outlines_that_name_nobody_end_the_trajectory():
    one, _, _ = woven({"q": "[do this and that"})
    assert one.fault == "p: its outlines name no thread; write `1: what to do`"


def test_a_server_that_is_not_there_is_the_trajectorys_fault():
    one, _, told = woven({"q": None})
    assert one.fault == "p: answers 500: out of order"
    assert told[0][1] == "fault"


def test_budgets_hold():
    for limit in range(1, 30):
        one, _, _ = woven(critical=limit)
        assert one.critical <= limit
        one, _, _ = woven(total=limit)
        assert one.tokens <= limit
    one, _, _ = woven(critical=13)
    assert one.fault == "p-1: no budget is left to go on"
    assert one.said == "x[1:a 2:b 3:c]<1:><2:><3:>!"


def test_one_trajectorys_end_is_not_the_others():
    limits = Limits(segment=50, threads=8)
    names = ["good", "bad", "also"]
    prompts = ["q", "?", "q"]
    ended: list[str] = []
    all_ = [
        Trajectory(name, prompt, limits, MARKS, lambda *_: None)
        for name, prompt in zip(names, prompts, strict=True)
    ]
    ended += [one.name for one in fork_and_join(all_, Scripted(SCRIPT), together=2)]
    assert sorted(ended) == sorted(names)
    assert all_[0].said == all_[2].said
    assert all_[1].fault == "bad: no such line"
