"""The tokenizer of tasks: their texts come back, numbers and words are one token, marks hide."""

import pytest

from engine.core.config import kinds
from engine.models.text.tokenizer import Tokenizer
from engine.recipes.task_tokenizer import UNKNOWN, task_tokenizer
from engine.tasks.task import Task
from engine.training.data.tokenizer import BOS, EOS, save_tokenizer

TASKS = [task() for task in kinds(Task).values()]


@pytest.mark.parametrize("numbers", [0, 120])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_a_task_comes_back_from_a_saved_folder(task, numbers, tmp_path):
    save_tokenizer(task_tokenizer(task.words, numbers=numbers), tmp_path, 128)
    tokenizer = Tokenizer(tmp_path)
    for problem in task.problems("test", 20):
        text = problem.prompt + problem.answer
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.rules.token_to_id(UNKNOWN) not in ids
        stream = tokenizer.stream()
        assert "".join([stream.push(token) for token in ids]) + stream.flush() == text


def test_numbers_up_to_the_limit_and_words_are_one_token():
    tokenizer = task_tokenizer(("sort", "sorted"), numbers=100)
    assert tokenizer.encode("7*14=98").tokens == ["7", "*", "14", "=", "98"]
    assert tokenizer.encode("100,101,014").tokens == ["100", *",101,014"]
    assert tokenizer.encode("sorted sort").tokens == ["sorted", " ", "sort"]


def test_marks_are_special_and_recipes_may_add_any():
    tokenizer = task_tokenizer(special=("<|spawn|>", "<think 1>"))
    ids = tokenizer.encode(f"{BOS}1<|spawn|>2<think 1>{EOS}").ids
    assert len(ids) == 6
    assert (ids[0], ids[-1]) == (0, 1)
    assert tokenizer.decode(ids) == "12"
    assert tokenizer.decode(ids, skip_special_tokens=False) == f"{BOS}1<|spawn|>2<think 1>{EOS}"
