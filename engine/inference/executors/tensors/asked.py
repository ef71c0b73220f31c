"""What a config asks of a model that not every model has: refused in one line, or made."""

from engine.core.errors import BadInput
from engine.inference.executors.settings import Settings
from engine.inference.executors.tensors.attention_mass import AttentionProbe
from engine.models.config import ModelConfig
from engine.models.model import Model


def alone(config: Settings, model: ModelConfig) -> None:
    """Raises BadInput where something is asked of parallel streams that one stream alone has."""
    for what, asked in (
        ("attention_every", config.attention_every > 0),
        ("speculation.alignment padded", config.speculation.pads),
        ("speculation.branches above 1", config.speculation.width > 1),
        ("speculation mirror", config.speculation.mirrors is not None),
    ):
        if model.streams is not None and asked:
            raise BadInput(f"{what}: not of a model with parallel streams; leave it as it was")


def probe_of(config: Settings, model: Model) -> AttentionProbe | None:
    """What samples attention, where it is asked for. Raises BadInput where it cannot be."""
    if not config.attention_every:
        return None
    if config.speculation.width > 1:
        raise BadInput(
            "attention_every: attention of drafts that branch is not sampled; set it to 0, or "
            "speculation.branches to 1"
        )
    layers, heads = model.config.layers, model.config.heads
    if model.config.index is not None:
        raise BadInput(
            f"attention_every: of {model.config.architecture} an index thins attention out, which "
            "is not sampled; set it to 0"
        )
    if config.attention_layer >= layers or config.attention_head >= heads:
        raise BadInput(
            f"attention_layer {config.attention_layer}, attention_head {config.attention_head}: "
            f"the model has {layers} layers of {heads} heads"
        )
    return AttentionProbe(model, config.attention_layer, config.attention_head)
