"""A prompt with a suffix is what models were trained to fill in after, or a line that says no."""

import pytest
from tokenizers import AddedToken

from engine.core.errors import BadInput
from engine.models.loading.find import find
from engine.models.text.tokenizer import Tokenizer
from workbench.live.fill_in import MARKS
from workbench.live.prompts import Prompts


def prompts(marks: tuple[str, ...] = ()) -> Prompts:
    tokenizer = Tokenizer(find("stdlib-5m").folder)
    tokenizer.rules.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    return Prompts("m", tokenizer, 512, tokenizer.vocab, tokenizer.eos)


@pytest.mark.parametrize("marks", MARKS)
def test_a_suffix_stands_where_the_model_expects_it(marks):
    made = prompts(marks)
    before, between, after = (made.tokenizer.rules.token_to_id(mark) for mark in marks)
    tokens = made.encode("def f(", suffix="):\n    return 1")
    plain = made.encode("def f(", special=False), made.encode("):\n    return 1", special=False)
    start = made.tokenizer.encode("")
    assert tokens == [*start, before, *plain[0], between, *plain[1], after]
    assert made.encode("a") == prompts().encode("a")  # without one nothing changes


def test_a_model_without_such_tokens_says_so():
    with pytest.raises(BadInput, match="suffix: m has no tokens"):
        prompts().encode("a", suffix="b")
