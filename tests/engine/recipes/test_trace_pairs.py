"""Pairs of traces as a judge learns and reads them: who sees whom, which class, what verdict."""

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from engine.models.reference import dense
from engine.reasoning.pruning.judges import OTHER, SAME, Trace, Trained
from engine.recipes.folder import saved_weights, write_model
from engine.recipes.from_examples.judge_agreement import RECIPE
from engine.recipes.trace_pairs import Said, beside, drawn
from engine.training.losses.language import fresh_weights

QUESTION = "Aa2b5c8;Be0f9;"
TRACES = ["a0+2=2;b2+5=7;c7", "a0+2=2;b2+5=6;c6", "a0+2=3;", "a0+2=2;b2+5=7;c7"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained judge."""
    out = tmp_path_factory.mktemp("judge")
    tokenizer = RECIPE.tokenizer()
    config = RECIPE.llama(tokenizer.get_vocab_size())
    weights = {name: 6 * weight for name, weight in fresh_weights(config, 3).items()}
    write_model(out, config, weights, tokenizer)
    return out


def test_the_second_trace_sees_as_much_of_the_first_as_it_has_written() -> None:
    example = beside([1, 2, 3], [4, 5, 6, 7], [8, 9], verdict=0, skip=1)
    assert example.tokens_T.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert example.positions_T.tolist() == [0, 1, 2, 3, 4, 5, 6, 3, 4]
    assert example.at_L.tolist() == [8]
    assert example.target_L.tolist() == [0]
    sees = [np.flatnonzero(row).tolist() for row in example.visible_TT]
    assert sees[:3] == [[0], [0, 1], [0, 1, 2]]
    assert sees[6] == [0, 1, 2, 3, 4, 5, 6]  # the first trace knows nothing of the second
    assert sees[7] == [0, 1, 2, 3, 7]
    assert sees[8] == [0, 1, 2, 3, 4, 7, 8]


def test_the_paged_judge_says_what_a_forward_from_scratch_says(folder: Path) -> None:
    config, weights = saved_weights(folder)
    judging = Trained(model=str(folder), surface=False).open(dict)
    tokenizer = RECIPE.tokenizer()
    ids = [tokenizer.token_to_id(word) for word in (SAME, OTHER)]
    for last in range(1, len(TRACES)):
        others = [Trace(str(n), text) for n, text in enumerate(TRACES[:last])]
        found = judging.agree(QUESTION, others, Trace(str(last), TRACES[last]))
        for other, said in zip(others, found, strict=True):
            texts = QUESTION, other.text, TRACES[last]
            example = beside(*(tokenizer.encode(text).ids for text in texts), verdict=0)
            logits_TV = dense(
                config,
                weights,
                torch.from_numpy(example.tokens_T)[None],
                positions_BT=torch.from_numpy(example.positions_T)[None],
                visible_BTS=torch.from_numpy(example.visible_TT)[None],
            )[0]
            want = logits_TV[-1, ids].softmax(0)[0]
            assert said == pytest.approx(float(want), abs=1e-4)


def test_the_judge_reads_a_question_and_what_it_compares_with_once(folder: Path) -> None:
    judging = Trained(model=str(folder), surface=False).open(dict)
    first, second, third = (Trace(str(n), text) for n, text in enumerate(TRACES[:3]))
    judging.agree(QUESTION, [first], second)
    assert judging.cost.tokens == len(QUESTION) + len(first.text) + len(second.text)
    flops = judging.cost.flops
    judging.agree(QUESTION, [first], third)
    assert judging.cost.tokens == sum(map(len, (QUESTION, *TRACES[:3])))
    assert judging.cost.comparisons == 2
    assert 0 < judging.cost.flops - flops < flops
    pages = judging.caches.cache
    assert pages.held > 0
    judging.forget()
    assert pages.held == 0


def test_classes_are_drawn_evenly_where_both_are_there() -> None:
    traces = [Said(str(n), "7" if n else "3") for n in range(8)]  # 7 of 28 pairs differ
    chance = Random(0)
    counts = Counter(
        one.answer == two.answer for one, two in (drawn(traces, chance) for _ in range(600))
    )
    assert abs(counts[True] - 300) < 60
    assert all(one != two for one, two in (drawn(traces, chance) for _ in range(50)))
    alike = [Said(str(n), "7") for n in range(3)]
    assert all(one.answer == two.answer for one, two in (drawn(alike, chance) for _ in range(20)))
