"""How much of an answer's end may yet become one of its stop texts."""

import random

from engine.inference.requests.stop_texts import StopTexts


def held_back(text: str, stops: tuple[str, ...]) -> int:
    """The reference: every length is tried."""
    for length in range(min(max(map(len, stops)) - 1, len(text)), 0, -1):
        if any(stop.startswith(text[-length:]) for stop in stops):
            return length
    return 0


def test_as_much_is_held_back_as_where_every_length_is_tried():
    draw = random.Random(0)

    def some(low: int, high: int) -> str:
        return "".join(draw.choice("ab") for _ in range(draw.randint(low, high)))

    for _ in range(500):
        stops, text = tuple(some(1, 6) for _ in range(draw.randint(1, 4))), some(0, 5)
        one = StopTexts(stops, text)
        for _ in range(8):
            more = some(0, 4)
            text += more
            one.push(more)
            assert one.held_back == held_back(text, stops), (stops, text)


def test_long_stop_texts_cost_a_token_a_few_comparisons_each():
    class Counted(str):
        looks = 0

        def __getitem__(self, at):
            Counted.looks += 1
            return str.__getitem__(self, at)

    stops = tuple(Counted(("ab " * 90)[at : at + 255]) for at in range(16))
    one = StopTexts(stops, "ab " * 85)
    Counted.looks = 0
    for _ in range(100):
        one.push("ab ")
    assert Counted.looks <= 16 * 300 * 4
