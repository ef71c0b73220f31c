"""The model card of a reinforced model, from the facts of its `recipe.json`."""

from typing import Any

from engine.recipes.example_card import ROW

TOP = """\
---
license: apache-2.0
library_name: transformers
tags: [reasoning, reinforcement, llama, parallel-workbench]
---
# {name}

{about}: {parameters:,} parameters in float16. It began as `{recipe[start]}` and was reinforced by
this repository with nothing but whether its answers are right, on problems drawn by seed. Test
problems are on the other side of a split by problem: no problem is on both.

| | |
|---|---|
| Tokens | {entries:,} words of traces |
| Reinforcement | {recipe[training][steps]:,} rounds of {recipe[training][problems]:,} problems, \
{recipe[training][group]} episodes of each: {episodes:,} episodes |
| Rate | {recipe[training][rate]:g} at first, falling to nothing; {recipe[training][updates]} \
updates a round, ratios clipped at 1 ± {recipe[training][clip]:g}, divergence weighed by \
{recipe[training][kl]:g} |
| Contexts | {recipe[training][window]:,} tokens each while it was reinforced |

| Score on test problems | | 95% interval | problems |
|---|---|---|---|
"""
BOTTOM = """
Scores are of this folder's float16 file, drawn at temperature 1, measured by its recipe. Made again
by

```
{command}
```

Test problems as its threads read and answer them:

{shown}
"""


def card(facts: dict[str, Any]) -> str:
    """The README of a model folder."""
    rows = "".join(ROW.format(name=name, **score) for name, score in facts["scores"].items())
    shown = "\n\n".join(f"```\n{sample.rstrip()}\n```" for sample in facts["samples"])
    return TOP.format(**facts) + rows + BOTTOM.format(shown=shown, **facts)
