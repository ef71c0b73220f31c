"""A recipe for a masked-diffusion model of list tasks: any subset of an answer may be masked.

Of an answer drawn from its joint, one to all positions are masked at random and told from the
rest, each counted by one over how many are masked: the bound that any-order models are trained on
(arXiv 2502.09992, equation 3).
"""

from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor

from engine.core.clock import Clock
from engine.core.config import knob, update
from engine.diffusion.distance import distance
from engine.diffusion.joints import LONGEST, MASK, TASKS, VOCAB, WORDS, draw
from engine.diffusion.model import SHIPPED, Masked, bidirectional, load_masked
from engine.inference.policies.unmasking import Confidence
from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.models.loading.load import save
from engine.recipes.begin import origin
from engine.recipes.folder import write_json
from engine.recipes.recipe import Shape
from engine.training.loop.checkpoint import remove_checkpoint
from engine.training.loop.settings import Training
from engine.training.loop.single_process import SingleProcess
from engine.training.loop.training_loop import Emit, training_loop
from engine.training.losses.language import fresh_weights

JUDGED, TRIED = 64, 8  # prompts of a task when training is judged; and when the model is done
AWAY = 1 << 32  # seeds from here on are of prompts that training never draws from


class ListsRecipe(Shape):
    """A small bidirectional Llama and its training; `training.tokens` over the longest text's
    length are the texts of a step."""

    name: str = knob(doc="Name of the model and its folder")
    about: str = knob("", "What it is for, one line")


RECIPE = ListsRecipe(
    name=SHIPPED,
    about="A very small masked-diffusion model that copies, edits, shuffles and repeats lists",
    hidden=64,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=16,
    width=176,
    training=Training(
        steps=4000, warmup=100, decay=1500, rate=3e-3, tokens=2048, context=16, long_context=16,
        precision="float32", report=50, evaluate=1000, checkpoint=500,
    ),
)  # fmt: skip
FAST = {"training.steps": 4, "training.warmup": 1, "training.decay": 2, "training.tokens": 128,
        "training.evaluate": 4}  # fmt: skip


@cache
def masked_recipes() -> dict[str, ListsRecipe]:
    """Recipes of masked-diffusion models by name."""
    return {RECIPE.name: RECIPE}


def make_masked(
    recipe: ListsRecipe, out: Path, emit: Emit, clock: Clock, fast: bool = False
) -> Path:
    """Train, measure and write one recipe; `out`. Resumes from the checkpoint in `out`."""
    recipe = update(recipe, FAST) if fast else recipe
    config, training = masked_llama(recipe), recipe.training
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = out / "checkpoint.safetensors"

    def loss(weights: dict[str, Tensor], step: int) -> tuple[Tensor, int]:
        texts = texts_of(training, training.seed, step)
        return masked_loss(config, weights, texts), texts[0].numel()

    def judge(weights: dict[str, Tensor], step: int) -> dict[str, float]:
        texts = texts_of(training, AWAY, step, JUDGED)
        with torch.inference_mode():
            return {"validation_loss": float(masked_loss(config, weights, texts))}

    learner = SingleProcess(fresh_weights(config, training.seed), training, loss, checkpoint)
    training_loop(learner, training, judge, emit=emit, clock=clock, origin=origin(recipe))
    save(out, config, {name: weight.half() for name, weight in learner.whole().items()})
    list_words().save(str(out / "tokenizer.json"))
    facts = {
        "name": recipe.name,
        "about": recipe.about,
        "command": f"workbench train {recipe.name}",
        "parameters": sum(weight.numel() for weight in learner.whole().values()),
        "steps": training.steps,
        "seed": training.seed,
        "error_in_nats_one_token_a_step": errors(load_masked(out), 2 if fast else TRIED),
    }
    write_json(out / "recipe.json", facts)
    remove_checkpoint(checkpoint)
    return out


def masked_llama(recipe: ListsRecipe) -> ModelConfig:
    """A Llama's architecture, and which token is the mask; no token begins or ends a text."""
    own = {"bos_token_id": None, "eos_token_id": None, "mask_token_id": MASK}
    return parse(recipe.llama(VOCAB).raw | own)


def list_words() -> Tokenizer:
    """A token for each word of the tasks; any other word reads as a mask."""
    ids = {word: place for place, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=WORDS[MASK]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def errors(model: Masked, prompts: int) -> dict[str, float]:
    """By task, the mean error of answers drawn a token a step, in nats, over unseen prompts."""
    found = {}
    for task in TASKS:
        joints = [draw(task, 5, np.random.default_rng(AWAY + i)) for i in range(prompts)]
        found[task] = float(np.mean([distance(model, Confidence(), j).error for j in joints]))
    return found


def texts_of(
    training: Training, seed: int, step: int, rows: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Texts of a step, all of one length: tokens with masks [N, T], answers and what is masked
    [N, L]."""
    chance = np.random.default_rng([seed, step])
    rows = rows or max(1, training.tokens // (4 + 2 * LONGEST))
    length = int(chance.integers(2, LONGEST + 1))
    shown, said, hidden = [], [], []
    for _ in range(rows):
        joint = draw(TASKS[int(chance.integers(len(TASKS)))], length, chance)
        answer_1L = joint.answers_SL[chance.integers(len(joint.answers_SL))][None]
        masked_1L = np.zeros((1, length), np.bool_)
        masked_1L[0, chance.permutation(length)[: chance.integers(1, length + 1)]] = True
        shown.append(joint.canvas(answer_1L, ~masked_1L))
        said.append(answer_1L)
        hidden.append(masked_1L)
    tokens, answers, masked = (torch.from_numpy(np.concatenate(x)) for x in (shown, said, hidden))
    return tokens, answers, masked


def masked_loss(
    config: ModelConfig, weights: dict[str, Tensor], texts: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Nats of a masked token, every text counted alike."""
    tokens_NT, answers_NL, masked_NL = texts
    logits_NTV = bidirectional(config, weights, tokens_NT)
    logits_NVL = logits_NTV[:, -answers_NL.shape[1] :].transpose(1, 2)
    nats_NL = F.cross_entropy(logits_NVL, answers_NL, reduction="none") * masked_NL
    return (nats_NL.sum(1) / masked_NL.sum(1)).mean()
