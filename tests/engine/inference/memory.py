"""An executor whose pages hold a running hash of what was computed, so a wrong page is seen.

Position i of a sequence writes a number that depends on tokens 0 … i. Before a token is given out,
every position that its attention would read must hold exactly that number.
"""

import numpy as np

from engine.inference.executors.executor import Facts
from engine.inference.requests.step import Result, Step

VOCAB = 50


def chain(tokens: np.ndarray) -> np.ndarray:
    """For each position a number that depends on all tokens up to it."""
    powers = np.cumprod(np.full(len(tokens), 0x9E3779B97F4A7C15 | 1, np.uint64))
    return np.cumsum((tokens.astype(np.uint64) + np.uint64(7)) * powers)


def said_at(text_T: np.ndarray, places: int) -> np.ndarray:
    """What may stand at the last `places` of a text, by all of it: p_LV."""
    p_LV = np.random.default_rng(int(chain(text_T)[-1])).random((places, VOCAB)) ** 8
    return p_LV / p_LV.sum(-1, keepdims=True)


class PageMemory:
    """Does a step's page movements and writes on numbers instead of tensors, and checks reads."""

    def __init__(
        self, pages: int, host_pages: int, page_size: int, eos: tuple[int, ...] = (),
        drafts: bool = False, running: int = 0,
    ):  # fmt: skip
        """`running`: requests that keep a recurrent state, which is a number here, too."""
        self.facts = Facts(
            "memory", "none", VOCAB, 4096, 1, 1, 1.0, eos, bytes_per_state=float(running > 0),
            both_ways=not running,
        )  # fmt: skip
        self.states = np.zeros(2 * running, np.uint64)
        self.host_states = np.zeros(running, np.uint64)
        self.pages = np.zeros((pages, page_size), np.uint64)
        self.host = np.zeros((host_pages, page_size), np.uint64)
        self.steps, self.drafts = 0, drafts

    def copy_seconds(self, pages_R: np.ndarray) -> float:
        """As long as a step, so that somebody waits."""
        return 1.0

    def execute(self, step: Step) -> Result:
        self.steps += 1
        slots = self.pages.reshape(-1)
        slots[step.moves.slots[:, 1]] = slots[step.moves.slots[:, 0]]
        for page, host in step.moves.swap_out:
            self.host[host] = self.pages[page]
        for source, target in step.moves.copies:
            self.pages[target] = self.pages[source]
        for host, page in step.moves.swap_in:
            self.pages[page] = self.host[host]
        for page, host in step.moves.states_out:
            self.host_states[host] = self.states[page]
        for host, page in step.moves.states_in:
            self.states[page] = self.host_states[host]
        rows, size = step.rows, step.rows.page_size
        if self.drafts:
            self.draft(step)
        if step.parents_N is not None:
            return self.branch(step)
        sums = []
        for row, start, count in zip(step.rows_B, step.starts_B, step.queries_B, strict=True):
            assert count > 0
            expected = chain(rows.tokens[row, : start + count])
            for at in range(start, start + count):
                self.pages[rows.tables[row, at // size], at % size] = expected[at]
            sums.append(expected)
        for row, expected in zip(step.rows_B, sums, strict=True):
            table = rows.tables[row, : -(-len(expected) // size)]
            assert (table >= 0).all()
            read = self.pages[table].ravel()[: len(expected)]
            assert (read == expected).all(), f"row {row} would read wrong pages"
        self.recur(step, sums)
        last = [
            int(sums[b][known - 1])
            for b, known in zip(step.sample_from_S, step.known_S.tolist(), strict=True)
        ]
        tokens = [self.said(x, step, row) for x, row in zip(last, step.sample_rows_S, strict=True)]
        logprobs = np.full(len(tokens), -1.0, np.float32)
        result = Result(np.array(tokens, np.int32), logprobs, 0.01)
        for b in () if step.canvases_C is None else step.canvases_C.tolist():
            row = int(step.rows_B[b])
            assert not step.starts_B[b] and step.queries_B[b] == rows.known[row], "half a text"
            assert b not in step.sample_from_S, "a token behind the masks"
            text_T = rows.tokens[row, : rows.known[row]]
            result.canvases[row] = said_at(text_T, int(rows.known[row] - rows.prompt[row]))
        return result

    def branch(self, step: Step) -> Result:
        """Drafts on paths of their own, each on the place it was drafted at."""
        rows, size, last = step.rows, step.rows.page_size, []
        knowns = (step.starts_B + step.queries_B - step.drafts_B).tolist()
        sums = [
            chain(rows.tokens[row, :known]) for row, known in zip(step.rows_B, knowns, strict=True)
        ]
        for row, start, expected in zip(step.rows_B, step.starts_B, sums, strict=True):
            for at in range(start, len(expected)):
                self.pages[rows.tables[row, at // size], at % size] = expected[at]
        for row, expected in zip(step.rows_B, sums, strict=True):
            table = rows.tables[row, : -(-len(expected) // size)]
            assert (table >= 0).all()
            read = self.pages[table].ravel()[: len(expected)]
            assert (read == expected).all(), f"row {row} would read wrong pages"
        for s, row in enumerate(step.sample_rows_S.tolist()):
            seen = step.before(s)
            assert len(seen) == step.known_S[s]
            last.append(int(chain(seen)[-1]))
            if step.ahead_S[s]:
                at = int(rows.known[row] + step.ahead_S[s]) - 1
                self.pages[rows.tables[row, at // size], at % size] = last[-1]
        tokens = [self.said(x, step, row) for x, row in zip(last, step.sample_rows_S, strict=True)]
        return Result(np.array(tokens, np.int32), np.full(len(tokens), -1.0, np.float32), 0.01)

    def recur(self, step: Step, sums: list[np.ndarray]) -> None:
        """Every sequence begins with the state after its cached tokens; all are read first."""
        states = step.states
        assert (states is None) == (not len(self.states))
        if states is None:
            return
        for b, (start, page) in enumerate(zip(step.starts_B, states.read_B, strict=True)):
            assert (page < 0) == (start == 0)
            assert page < 0 or self.states[page] == sums[b][start - 1], f"wrong state of {b}"
        for b, after, page in states.keep_N3.tolist():
            self.states[page] = sums[b][step.starts_B[b] + after - 1]
        drafts_B = 0 * step.queries_B if step.drafts_B is None else step.drafts_B
        assert ((states.write_B < 0) == (drafts_B > 0)).all(), "a draft is in somebody's state"
        ends_B = np.flatnonzero(states.write_B >= 0)
        for b in ends_B.tolist():
            self.states[states.write_B[b]] = sums[b][-1]
        written = [*states.write_B[ends_B].tolist(), *states.keep_N3[:, 2].tolist()]
        assert len(set(written)) == len(written) and min(written) >= 0
        own_B = step.rows.state[step.rows_B]
        assert set(own_B.tolist()) <= set(written), "somebody's state was not written"

    def draft(self, step: Step) -> None:
        """What a draft model would say: now what the target will, now something else."""
        assert step.drafts_B is not None
        if step.parents_N is not None:
            self.draft_trees(step)
            return
        for row, drafts in zip(step.rows_B.tolist(), step.drafts_B.tolist(), strict=True):
            known = int(step.rows.known[row])
            for at in range(known, known + drafts):
                x = int(chain(step.rows.tokens[row, :at])[-1])
                right = self.said(x, step, row)
                step.rows.tokens[row, at] = right if x % 3 else (right + 1) % VOCAB

    def draft_trees(self, step: Step) -> None:
        """Trees of any shape, in which now one child is right, now another, now none."""
        n = 0
        for s, row in enumerate(step.sample_rows_S.tolist()):
            ahead = int(step.ahead_S[s])
            if not step.drafts_B[step.sample_from_S[s]] or not ahead:
                continue
            at, first = int(step.rows.known[row]) + ahead - 1, step.first_draft(s)
            x = int(chain(step.rows.tokens[row, :at])[-1])
            parent = step.parents_N[n] = x // 7 % ahead - 1
            of_parent = [i for i in range(ahead - 1) if step.parents_N[first + i] == parent]
            step.ahead_S[s] = parent + 1
            right = self.said(int(chain(step.before(s))[-1]), step, row)
            step.ahead_S[s] = ahead
            step.rows.tokens[row, at] = (right + len(of_parent) + x % 2) % VOCAB
            n += 1

    def said(self, x: int, step: Step, row: int) -> int:
        """The token after what `x` stands for."""
        seed = int(step.rows.seed[row]) if self.draws(step, row) else 0
        return ((x ^ seed * 0xD1342543DE82EF95) >> 33) % VOCAB

    @staticmethod
    def draws(step: Step, row: int) -> bool:
        return step.requests[row].sampling.temperature > 0
