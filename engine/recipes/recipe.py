"""A recipe: everything that decides what a shipped language model becomes.

`Shape` is what recipes for text and recipes for examples have in common.
"""

from typing import ClassVar

from engine.core.config import Config, knob
from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.training.losses.language import Training


class Shape(Config):
    """A small Llama with tied embeddings and its training.

    `start`: the model it goes on from; none if empty.
    """

    hidden: int = knob(256, "Residual width", low=8, high=8192)
    layers: int = knob(6, "Transformer layers", low=1, high=128)
    heads: int = knob(8, "Query heads", low=1, high=128)
    kv_heads: int = knob(4, "Key/value heads", low=1, high=128)
    head_dim: int = knob(32, "Width of a head", low=2, high=512)
    width: int = knob(704, "Feed-forward width", low=8, high=32_768)
    training: Training = knob(Training(), "How it learns")
    start: ClassVar[str] = ""
    paths: ClassVar[int] = 0  # of thought, each with embeddings for keys and values

    def llama(self, entries: int) -> ModelConfig:
        """The architecture for so many tokens, as Hugging Face's `config.json` would say it."""
        paths = {"thinking_paths": self.paths} if self.paths else {}
        return parse(
            {
                "architectures": ["LlamaForCausalLM"],
                "model_type": "llama",
                "vocab_size": entries,
                "hidden_size": self.hidden,
                "num_hidden_layers": self.layers,
                "num_attention_heads": self.heads,
                "num_key_value_heads": self.kv_heads,
                "head_dim": self.head_dim,
                "intermediate_size": self.width,
                "hidden_act": "silu",
                "max_position_embeddings": self.training.long_context,
                "rms_norm_eps": 1e-5,
                "rope_theta": 10_000.0,
                "tie_word_embeddings": True,
                "bos_token_id": 0,
                "eos_token_id": 1,
                **paths,
            }
        )


class Recipe(Shape):
    """A model of text, with its tokenizer's size."""

    name: str = knob(doc="Name of the model and its folder")
    about: str = knob("", "What it is for, one line")
    draft: str = knob("", "The smaller model it grows from, which then drafts for it")
    only: tuple[str, ...] = knob(
        (), "How paths begin of the files it learns on from `draft`; none: all files, anew"
    )
    teacher: str = knob(
        "", "The model it learns to foretell, from text of its writing; none: people's text alone"
    )
    texts: int = knob(1280, "Texts that the teacher writes", low=1, high=1_000_000)
    entries: int = knob(4096, "Tokenizer entries", low=258, high=65_536)
    completion: int = knob(48, "Tokens of each sample in the model's card", low=1, high=512)

    def model(self) -> ModelConfig:
        """The architecture, as Hugging Face's `config.json` would say it."""
        return self.llama(self.entries)
