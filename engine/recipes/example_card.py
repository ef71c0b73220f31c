"""The model card of a model that learnt from examples, from the facts of its `recipe.json`."""

from typing import Any

TOP = """\
---
license: apache-2.0
library_name: transformers
tags: [reasoning, llama, parallel-workbench]
---
# {name}

{about}: {parameters:,} parameters in float16, trained by this repository on problems drawn by seed.
Test problems are on the other side of a split by problem: no problem is on both.

| | |
|---|---|
| Shape | {recipe[layers]} layers, width {recipe[hidden]}, {recipe[heads]} query and \
{recipe[kv_heads]} key/value heads of {recipe[head_dim]}, feed-forward {recipe[width]}, tied \
embeddings |
| Tokenizer | {entries:,} entries: characters, words of the task and special tokens |
| Context | {recipe[training][long_context]:,} tokens |
| Tokens seen | {tokens_seen:,} in {recipe[training][steps]:,} steps |
| Validation loss | {validation_loss:.4f} nats per learnt token, over {validation_examples:,} \
test examples |

| Score on test problems | | 95% interval | problems |
|---|---|---|---|
"""
ROW = "| {name} | **{value:.1%}** | {low:.1%} to {high:.1%} | {n:,} |\n"
START = "\nIt goes on from `{start}`: training began with that model's weights.\n"
PATHS = """
Each of its {paths} paths of thought has an embedding that is added to keys and values \
(`thinking_paths` in config.json). transformers loads the folder as a plain Llama and says that it \
leaves them out: right for the prompt and for text of no path, wrong for paths.
"""
BOTTOM = """
Scores are of this folder's float16 file, measured by its recipe. Made again by

```
{command}
```

Test problems as it reads and answers them:

{shown}
"""
MORE = {"start": START, "paths": PATHS}  # where the facts have them


def card(facts: dict[str, Any]) -> str:
    """The README of a model folder."""
    scores = "".join(ROW.format(name=name, **score) for name, score in facts["scores"].items())
    shown = "\n\n".join(f"```\n{sample.rstrip()}\n```" for sample in facts["samples"])
    more = "".join(text.format(**facts) for key, text in MORE.items() if facts.get(key))
    return TOP.format(**facts) + scores + more + BOTTOM.format(shown=shown, **facts)
