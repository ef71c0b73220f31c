"""Where an answer ends and what its listener hears."""

from engine.inference.executors.tensors.real_executor import executor_for
from tests.engine.inference.audit import audit
from tests.engine.inference.memory import VOCAB
from tests.engine.inference.small import Words, config, engine, request, serve, tiny_model


def test_answers_end_at_the_models_end_token_unless_told_to_go_on():
    held, _ = engine(eos=tuple(range(0, VOCAB, 4)))
    plain, deaf = request(9, 1, max_tokens=40), request(9, 1, max_tokens=40, ignore_eos=True)
    floored = request(9, 1, max_tokens=40, min_tokens=20)
    answers = serve(held, [plain, deaf, floored])
    assert plain.reason == "stop" and answers[0][-1] % 4 == 0
    assert all(token % 4 for token in answers[0][:-1])
    assert deaf.reason == "length" and len(answers[1]) == 40
    assert len(answers[2]) > 19


def test_end_tokens_outside_the_vocabulary_are_left_out():
    model = tiny_model()
    vocab = model.config.vocab
    executor = executor_for(config(), model, "tiny", (2, vocab, vocab - 1, 1 << 40))
    assert executor.facts.eos == executor.sample.eos == (2, vocab - 1)


def test_answers_end_at_stop_tokens_of_the_request():
    held, _ = engine()
    whole = serve(held, [request(9, 1, max_tokens=30)])[0]
    stop = whole[7]
    short = serve(held, [request(9, 1, max_tokens=30, stop_tokens=[stop])])[0]
    assert short == whole[: whole.index(stop) + 1]


def test_answers_are_cut_before_a_stop_text_and_never_show_part_of_it():
    held, _ = engine(Words())
    one = request(9, 1, max_tokens=30)
    serve(held, [one])
    stop = one.text[10:13]
    shown: list[str] = []
    other = request(9, 1, max_tokens=30, stop=[stop, "no such text"])
    other.on_token = lambda request, token, text, logprob: shown.append(text)
    serve(held, [other])
    assert other.text == one.text[: one.text.index(stop)] == "".join(shown)
    assert other.reason == "stop"


def test_a_stop_text_that_never_comes_hides_nothing_in_the_end():
    held, _ = engine(Words())
    one = request(9, 1, max_tokens=12)
    serve(held, [one])
    shown: list[str] = []
    other = request(9, 1, max_tokens=12, stop=[one.text[-1] + "?"])
    other.on_token = lambda request, token, text, logprob: shown.append(text)
    serve(held, [other])
    assert other.text == one.text == "".join(shown) and other.reason == "length"


def test_a_listener_hears_every_token_and_the_end():
    held, _ = engine(Words())
    one, heard, ended = request(9, 1, max_tokens=7), [], []
    one.on_token = lambda request, token, text, logprob: heard.append((token, text))
    one.on_end = lambda request: ended.append(request.reason)
    serve(held, [one])
    assert [token for token, _ in heard] == one.generated.tolist()
    assert "".join(text for _, text in heard) == one.text and ended == ["length"]


def test_a_listener_that_fails_ends_its_own_request_only():
    held, _ = engine()
    bad, good = request(9, 1), request(9, 2)

    def fail(*_: object) -> None:
        raise RuntimeError("gone")

    bad.on_token = fail
    serve(held, [bad, good])
    assert bad.state == "aborted" and good.state == "finished"
    audit(held)
