"""A model card in Hugging Face's form, written from the facts of `recipe.json`."""

from typing import Any

TOP = """\
---
license: apache-2.0
language: code
library_name: transformers
tags: [python, llama, parallel-workbench]
---
# {name}

{about}: {parameters:,} parameters in float16, trained by this repository on the
sources of Python {python}'s own standard library. It is here so that engines, caches and schedulers
have something real to decode on the first run; it writes plausible Python, not correct Python.

| | |
|---|---|
"""
ROWS = {
    "Shape": "{layers} layers, width {hidden}, {heads} query and {kv_heads} key/value heads of "
    "{head_dim}, feed-forward {width}, tied embeddings",
    "Tokenizer": "byte-level byte pairs, {entries:,} entries",
    "Context": "{window:,} tokens ({context:,} until the last {decay:,} steps)",
    "Training text": "{training[files]} files, {training[bytes]:,} bytes, "
    "{training[tokens]:,} tokens",
    "Held-out text": "{validation[files]} files, {validation[bytes]:,} bytes, "
    "{validation[tokens]:,} tokens",
    "Tokens seen": "{seen:,} in {steps:,} steps",
    "Validation loss": "**{loss:.4f}** nats per token, {bits:.4f} bits per byte, in windows of "
    "{window:,}",
}
DRAFT_ROWS = {
    "Grown from": "{draft}, as the same function with room to learn more",
    "Drafted by": "{draft}: the same greedy choice at {greedy_agreement:.1%} of held-out positions",
}
SPECIAL_ROWS = {
    "Learnt on from": "{draft}, on files whose paths begin with {files} alone, all figures of "
    "text being theirs",
    "Beside it": "{draft} has a validation loss of {draft_loss:.4f} on the same text, and the same "
    "greedy choice at {greedy_agreement:.1%} of its positions",
}
TAUGHT_ROWS = {
    "Learnt on from": "{draft}, from {texts:,} texts that {teacher} wrote by itself and a third as "
    "much of the training text, to give each token the chance that {teacher} gives it",
    "Drafts for": "{teacher}: the same greedy choice at {greedy_agreement:.1%} of held-out "
    "positions ({draft}: {draft_agreement:.1%}), and at {own_text_greedy_agreement:.1%} of those "
    "of {teacher}'s own text ({draft}: {own_text_draft_agreement:.1%})",
}
BOTTOM = """
Losses are of this folder's float16 file, computed in float32. Made again by

```
{command}
```

which needs the same Python for the same text (`corpus.digest` in `recipe.json` says which it was);
another version gives a slightly different model. Greedy completions:

{samples}
The standard library is © Python Software Foundation and others, under the PSF licence.
"""


def card(facts: dict[str, Any]) -> str:
    """The README of a model folder."""
    recipe = facts["recipe"]
    samples = "".join(
        f"```python\n{prompt}{completion.rstrip()}\n```\n\n"
        for prompt, completion in facts["samples"].items()
    )
    values = {
        **{key: value for key, value in recipe.items() if key != "training"},
        **facts,
        **{key: facts["corpus"][key] for key in ("training", "validation")},
        **{key: recipe["training"][key] for key in ("context", "decay")},
        "seen": facts["tokens_seen"],
        "loss": facts["validation_loss"],
        "bits": facts["bits_per_byte"],
        "window": facts["validation_window"],
        "samples": samples.rstrip() + "\n",
    }
    values["files"] = ", ".join(f"`{path}`" for path in recipe.get("only", ()))
    rows = ROWS | (DRAFT_ROWS if "greedy_agreement" in facts else {})
    if recipe.get("only"):
        rows = ROWS | SPECIAL_ROWS
    if recipe.get("teacher"):
        rows = ROWS | TAUGHT_ROWS
    table = "".join(f"| {name} | {row} |\n" for name, row in rows.items())
    return (TOP + table + BOTTOM).format(**values)
