"""Programs over lists: both sides ask for the same programs, by examples of their own."""

from engine.tasks.list_programs import LINES, Line, ListPrograms, digits, walk

ONE = ListPrograms(least=1, most=1)


def test_a_side_has_no_programs_of_its_own():
    """Else a model learns which programs there are, and that those of the tests are not."""
    sides = [
        {problem.answer for problem in (ONE.problem(split, seed) for seed in range(400))}
        for split in ("train", "test")
    ]
    assert sides[0] == sides[1]
    lines = sum(len(numbers) for numbers, _ in LINES.values())
    assert len(sides[0]) == lines - 1  # one that seldom runs to its end on lists as they come


def test_examples_are_what_the_lines_do_and_each_line_does_something():
    for seed in range(60):
        problem = ListPrograms().problem("test", seed)
        walks = [walk(problem.lines, start) for start, _ in (*problem.shown, *problem.hidden)]
        ends = [end for _, end in (*problem.shown, *problem.hidden)]
        assert [each[-1] for each in walks] == ends
        for place in range(len(problem.lines)):
            assert any(each[place] != each[place + 1] for each in walks)


def test_a_line_is_written_with_its_number_and_a_value_without_commas():
    assert str(Line("x = [(v + {k}) % 10 for v in x]", 3)) == "x = [(v + 3) % 10 for v in x]"
    assert [digits(value) for value in ([3, 1], [], 7, [12])] == ["31", "-", "7", "[12]"]
