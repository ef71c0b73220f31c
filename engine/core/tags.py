"""What a span's tag says beyond its name: `key=value` words, such as `phase=decode dtype=bfloat16`.

Views read known keys and show the rest as they are. Values hold no spaces.
Known keys: phase (prefill, decode, training), dtype, shape, variant, grade (modelled where the
time was not measured), device, specials (exponentials), a memory level's name (L1, L2, L3, shared)
with its bytes, resident (the level that a span's main-memory bytes really came from) and of (the
span this one is a part of).
"""


def tag(**facts: object) -> str:
    """The tag of these facts, in the order given; empty ones are left out."""
    return " ".join(
        f"{key}={_word(value)}" for key, value in facts.items() if value not in ("", None)
    )


def facts(tag: str) -> dict[str, str]:
    """What a tag says; words without `=` are no facts."""
    return dict(word.split("=", 1) for word in tag.split() if "=" in word)


def _word(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "_".join(text.split())
