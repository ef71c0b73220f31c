"""Masks and positions of streams by hand, and their words."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.reasoning.streams.reference import changed, from_scratch
from engine.reasoning.streams.script import in_rows, reach, while_reading, who_sees
from engine.reasoning.streams.words import StreamWords
from engine.tasks import ledger
from engine.tasks.ledger import LETTERS
from tests.engine.models.small import config, weights
from tests.engine.reasoning.streams.stream_models import Entries, spoken


def test_who_sees_whom_is_read_from_text():
    names = ("read", "ask", "think")
    assert who_sees("", names).tolist() == np.eye(3, dtype=bool).tolist()
    assert who_sees("think: read ask; ask: think", names).tolist() == [
        [True, False, False], [False, True, True], [True, True, True]
    ]  # fmt: skip
    with pytest.raises(BadInput, match="'thnk' is no stream; did you mean think"):
        who_sees("thnk: read", names)


def test_rows_see_earlier_rows_of_whom_they_may_see():
    script = in_rows(np.arange(6).reshape(3, 2), who_sees("b: a", ["a", "b"]))
    assert script.visible_NN.astype(int).tolist() == [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 0],
        [1, 1, 0, 1, 0, 0],
        [1, 0, 1, 0, 1, 0],
        [1, 1, 1, 1, 0, 1],
    ]
    assert script.positions_N.tolist() == [0, 0, 1, 1, 2, 2]


def test_thoughts_see_their_input_and_count_from_afar():
    script = while_reading([7, 8, 9], [1, 2], [2, 3], 10)
    assert script.positions_N.tolist() == [0, 1, 2, 10, 11]
    assert script.visible_NN.astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 1, 1, 1],
    ]
    with pytest.raises(BadInput, match="keep them further apart"):
        while_reading([7, 8, 9], [1], [3], 2)


def test_what_is_seen_indirectly_takes_a_layer_for_each_hop():
    sees_NN = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]], bool)
    assert reach(sees_NN, 1).tolist() == sees_NN.tolist()
    assert reach(sees_NN, 2)[2].tolist() == [True, True, True]


@pytest.mark.parametrize("sees", ["", "b: a", "b: a; c: b", "a: b c; b: a c; c: a b"])
def test_a_token_changes_exactly_the_logits_it_may_change(sees):
    shape = config("llama-3")
    held = weights(shape)
    tokens_RS = np.random.default_rng(0).integers(0, shape.vocab, (7, 3))
    script = in_rows(tokens_RS, who_sees(sees, ["a", "b", "c"]))
    may_NN = reach(script.visible_NN, shape.layers)
    before = from_scratch(shape, held, script)
    for place in range(len(script.tokens_N)):
        other = int(script.tokens_N[place] + 1) % shape.vocab
        assert (changed(shape, held, script, place, other, before) == may_NN[:, place]).all()


def test_a_mask_that_leaks_is_noticed():
    shape = config("llama-3")
    script = in_rows(np.arange(12).reshape(6, 2), who_sees("", ["a", "b"]))
    may_NN = reach(script.visible_NN, shape.layers)
    script.visible_NN[9, 0] = True
    before = from_scratch(shape, weights(shape), script)
    assert (changed(shape, weights(shape), script, 0, 50, before) & ~may_NN[:, 0]).any()


def test_a_letter_is_another_word_in_another_stream():
    words = spoken(ledger)
    assert words.encode("read", "7") != words.encode("think", "7")
    assert words.text(words.encode("think", "a12;")) == "a12;"
    logits = np.full(97, -50.0)
    logits[words.encode("read", "7")] = 9.0
    logits[words.encode("think", "4")] = 1.0
    token, logprob = words.choose("think", logits)
    assert words.text([token]) == "4"
    assert logprob == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(BadInput, match="does not use 'A'"):
        words.encode("read", "A")
    with pytest.raises(BadInput, match="no entry <say>0"):
        StreamWords(Entries(LETTERS), {"say": "0"})
