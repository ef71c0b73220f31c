from engine.core.tags import facts, tag


def test_a_tag_reads_back():
    text = tag(phase="decode", dtype="float32", shape="8x8x64", L2=1.5e9, device="", grade=None)
    assert text == "phase=decode dtype=float32 shape=8x8x64 L2=1.5e+09"
    assert facts(text) == {
        "phase": "decode",
        "dtype": "float32",
        "shape": "8x8x64",
        "L2": "1.5e+09",
    }


def test_spaces_in_a_value_do_not_become_words_and_plain_words_are_no_facts():
    assert facts(tag(device="AMD EPYC")) == {"device": "AMD_EPYC"}
    assert facts("3:6 padding") == {}
